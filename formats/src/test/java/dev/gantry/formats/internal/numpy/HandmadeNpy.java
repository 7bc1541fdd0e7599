// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/// Makes NumPy files for tests.
final class HandmadeNpy {
  private HandmadeNpy() {}

  /// Returns an array in one of the two orders of axes and of bytes.
  ///
  /// @param bytes the elements in C order, little endian
  static byte[] array(
      DType dtype, TensorShape shape, byte[] bytes, boolean fortran, boolean bigEndian) {
    int width = dtype.bits() / Byte.SIZE;
    byte[] stored = fortran ? columnMajor(shape, bytes, width) : bytes.clone();
    if (bigEndian) {
      swap(stored, dtype == DType.C64 ? width / 2 : width);
    }
    String descr = (width == 1 ? "|" : bigEndian ? ">" : "<") + kind(dtype) + width;
    String dimensions =
        LongStream.of(shape.toArray()).mapToObj(n -> n + ",").collect(Collectors.joining(" "));
    return file(
        "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }"
            .formatted(descr, fortran ? "True" : "False", dimensions),
        stored);
  }

  private static char kind(DType dtype) {
    return switch (dtype) {
      case BOOL -> 'b';
      case C64 -> 'c';
      default -> Character.toLowerCase(dtype.name().charAt(0));
    };
  }

  /// Returns a file of version 1.0 with a header, which need not be valid.
  static byte[] file(String header, byte... data) {
    byte[] text = header.getBytes(StandardCharsets.ISO_8859_1);
    int padding = 63 - (10 + text.length) % 64;
    ByteBuffer file =
        ByteBuffer.allocate(10 + text.length + padding + 1 + data.length)
            .order(ByteOrder.LITTLE_ENDIAN);
    file.put("\u0093NUMPY".getBytes(StandardCharsets.ISO_8859_1)).put((byte) 1).put((byte) 0);
    file.putShort((short) (text.length + padding + 1)).put(text);
    for (int i = 0; i < padding; i++) {
      file.put((byte) ' ');
    }
    return file.put((byte) '\n').put(data).array();
  }

  private static byte[] columnMajor(TensorShape shape, byte[] bytes, int width) {
    byte[] stored = new byte[bytes.length];
    int elements = bytes.length / width;
    long[] index = new long[shape.rank()];
    for (int i = 0; i < elements; i++) {
      int to = 0;
      for (int axis = shape.rank() - 1; axis >= 0; axis--) {
        to = (int) (to * shape.dimension(axis) + index[axis]);
      }
      System.arraycopy(bytes, i * width, stored, to * width, width);
      for (int axis = shape.rank() - 1; axis >= 0; axis--) {
        if (++index[axis] < shape.dimension(axis)) {
          break;
        }
        index[axis] = 0;
      }
    }
    return stored;
  }

  private static void swap(byte[] bytes, int width) {
    for (int first = 0; first < bytes.length; first += width) {
      for (int i = 0; i < width / 2; i++) {
        byte kept = bytes[first + i];
        bytes[first + i] = bytes[first + width - 1 - i];
        bytes[first + width - 1 - i] = kept;
      }
    }
  }

  /// Writes an archive of members by name.
  static void writeArchive(Path file, Map<String, byte[]> members, boolean deflated)
      throws IOException {
    try (OutputStream out = Files.newOutputStream(file);
        ZipOutputStream zip = new ZipOutputStream(out)) {
      for (Map.Entry<String, byte[]> member : members.entrySet()) {
        ZipEntry entry = new ZipEntry(member.getKey());
        if (!deflated) {
          CRC32 sum = new CRC32();
          sum.update(member.getValue());
          entry.setMethod(ZipEntry.STORED);
          entry.setCrc(sum.getValue());
          entry.setSize(member.getValue().length);
        }
        zip.putNextEntry(entry);
        zip.write(member.getValue());
        zip.closeEntry();
      }
    }
  }
}
