// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;

/// Makes TFRecord files in memory, without the code under test.
public final class Framed {
  private Framed() {}

  public static byte[] of(List<byte[]> records) {
    ByteArrayOutputStream file = new ByteArrayOutputStream();
    for (byte[] record : records) {
      byte[] length = header(record.length);
      file.write(length, 0, length.length);
      file.write(record, 0, record.length);
      byte[] sum = littleEndian(4).putInt(masked(record)).array();
      file.write(sum, 0, sum.length);
    }
    return file.toByteArray();
  }

  /// Describes each record in a few words for comparisons, so that the message of a failed test
  /// fits a screen.
  static List<String> words(List<byte[]> records) {
    return records.stream()
        .map(bytes -> bytes.length + " bytes of " + Arrays.hashCode(bytes))
        .toList();
  }

  /// Returns the header of a record: its length and the length's checksum.
  static byte[] header(long length) {
    byte[] bytes = littleEndian(8).putLong(length).array();
    return littleEndian(12).put(bytes).putInt(masked(bytes)).array();
  }

  private static ByteBuffer littleEndian(int size) {
    return ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static int masked(byte[] bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes);
    long c = crc.getValue();
    return (int) ((c >>> 15 | c << 17) + 0xa282ead8L);
  }
}
