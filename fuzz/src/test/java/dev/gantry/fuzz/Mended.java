// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import dev.gantry.formats.internal.index.IndexFiles;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.BiFunction;
import java.util.zip.CRC32;
import java.util.zip.CRC32C;

/// Corrects the checksums of inputs. Inputs that cannot be parsed are not changed.
final class Mended {
  private static final int TAR_BLOCK = 512;
  private static final int TAR_SUM = 148;
  private static final String NO_SUM = "00000000";

  private Mended() {}

  /// Corrects the checksum of each chunk of a PNG.
  static byte[] png(byte[] png) {
    ByteBuffer buffer = ByteBuffer.wrap(png);
    int at = 8;
    while (at + 12 <= png.length && png[0] == (byte) 0x89) {
      int bytes = buffer.getInt(at);
      if (bytes < 0 || bytes > png.length - at - 12) {
        break;
      }
      CRC32 sum = new CRC32();
      sum.update(png, at + 4, bytes + 4);
      buffer.putInt(at + 8 + bytes, (int) sum.getValue());
      at += bytes + 12;
    }
    return png;
  }

  /// Corrects the checksum of each header of an archive, as far as the sizes of members lead.
  static byte[] tar(byte[] tar) {
    int at = 0;
    while (at + TAR_BLOCK <= tar.length) {
      int sum = 0;
      for (int i = 0; i < TAR_BLOCK; i++) {
        sum += i >= TAR_SUM && i < TAR_SUM + 8 ? ' ' : tar[at + i] & 0xff;
      }
      byte[] digits = "%06o\0 ".formatted(sum).getBytes(StandardCharsets.US_ASCII);
      if (sum != 8 * ' ') {
        System.arraycopy(digits, 0, tar, at + TAR_SUM, 8);
      }
      String size = new String(tar, at + 124, 11, StandardCharsets.ISO_8859_1).strip();
      long bytes = size.matches("[0-7]{1,9}") ? Long.parseLong(size, 8) : 0;
      at += (int) Math.min(tar.length, TAR_BLOCK * (1 + Math.ceilDiv(bytes, TAR_BLOCK)));
    }
    return tar;
  }

  /// Corrects the checksum of a manifest, which is computed with zeros in place of the checksum.
  static byte[] manifest(byte[] json) {
    String text = new String(json, StandardCharsets.ISO_8859_1);
    int name = text.indexOf("\"crc32c\"");
    int at = name < 0 ? -1 : text.indexOf('"', text.indexOf(':', name) + 1) + 1;
    if (at > 0 && at + NO_SUM.length() <= json.length) {
      System.arraycopy(NO_SUM.getBytes(StandardCharsets.US_ASCII), 0, json, at, NO_SUM.length());
      System.arraycopy(digits(json, json.length), 0, json, at, NO_SUM.length());
    }
    return json;
  }

  /// Corrects the manifests of checkpoints.
  static byte[] checkpoints(byte[] bundle) {
    return files(bundle, ".*manifest\\.json", (_, json) -> manifest(json));
  }

  /// Corrects the checksum in the last line of a file of checksums.
  static byte[] sums(byte[] bundle) {
    return files(
        bundle,
        ".*\\.gantry-sums",
        (_, text) -> {
          int last = text.length - 9;
          if (last >= 0) {
            System.arraycopy(digits(text, last), 0, text, last, 8);
          }
          return text;
        });
  }

  /// Corrects the checksums in the indexes of samples.
  static byte[] indexes(byte[] bundle) {
    return files(
        bundle,
        ".*\\.gantry-index",
        (_, index) -> IndexFiles.mended(index, Places.file("mended.gantry-index", index)));
  }

  private static byte[] files(
      byte[] bundle, String names, BiFunction<String, byte[], byte[]> mending) {
    SequencedMap<String, byte[]> files = Bundle.files(bundle);
    if (files.keySet().stream().noneMatch(name -> name.matches(names))) {
      return bundle;
    }
    for (Map.Entry<String, byte[]> file : files.entrySet()) {
      if (file.getKey().matches(names)) {
        file.setValue(mending.apply(file.getKey(), file.getValue()));
      }
    }
    return Bundle.of(files);
  }

  private static byte[] digits(byte[] bytes, int length) {
    CRC32C sum = new CRC32C();
    sum.update(bytes, 0, length);
    return HexFormat.of().toHexDigits((int) sum.getValue()).getBytes(StandardCharsets.US_ASCII);
  }
}
