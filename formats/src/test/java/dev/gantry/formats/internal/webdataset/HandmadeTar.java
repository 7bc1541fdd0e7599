// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.function.Consumer;
import java.util.zip.GZIPOutputStream;

/// Makes tar archives byte by byte, with any fault that a test needs.
public final class HandmadeTar {
  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

  public HandmadeTar file(String name, String data) {
    return file(name, data.getBytes(StandardCharsets.UTF_8));
  }

  public HandmadeTar file(String name, byte[] data) {
    return member(name, '0', data, _ -> {});
  }

  /// @param change changes the header before its checksum is computed
  HandmadeTar member(String name, char type, byte[] data, Consumer<byte[]> change) {
    byte[] header = new byte[TarHeader.BYTES];
    put(header, 0, name);
    put(header, 100, "0000644");
    put(header, 124, String.format(Locale.ROOT, "%011o", data.length));
    header[156] = (byte) type;
    put(header, 257, "ustar");
    put(header, 263, "00");
    change.accept(header);
    return raw(withChecksum(header)).data(data);
  }

  static void put(byte[] header, int at, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    System.arraycopy(bytes, 0, header, at, bytes.length);
  }

  static byte[] withChecksum(byte[] header) {
    put(header, 148, "        ");
    int sum = 0;
    for (byte each : header) {
      sum += Byte.toUnsignedInt(each);
    }
    put(header, 148, String.format(Locale.ROOT, "%06o\0 ", sum));
    return header;
  }

  /// Adds an extended header for the next member.
  HandmadeTar pax(char type, String... records) {
    StringBuilder text = new StringBuilder();
    for (String record : records) {
      int rest = record.getBytes(StandardCharsets.UTF_8).length + 2;
      int length = rest + Integer.toString(rest).length();
      length = rest + Integer.toString(length).length();
      text.append(length).append(' ').append(record).append('\n');
    }
    return member("pax", type, text.toString().getBytes(StandardCharsets.UTF_8), _ -> {});
  }

  HandmadeTar raw(byte[] more) {
    bytes.writeBytes(more);
    return this;
  }

  private HandmadeTar data(byte[] data) {
    raw(data);
    return raw(new byte[Math.floorMod(-data.length, TarHeader.BYTES)]);
  }

  byte[] unended() {
    return bytes.toByteArray();
  }

  byte[] bytes() {
    return raw(new byte[2 * TarHeader.BYTES]).unended();
  }

  public Path write(Path file) {
    return write(file, bytes());
  }

  static Path write(Path file, byte[] bytes) {
    try {
      return Files.write(file, bytes);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static byte[] gzip(byte[] bytes) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (GZIPOutputStream gzip = new GZIPOutputStream(out)) {
      gzip.write(bytes);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toByteArray();
  }
}
