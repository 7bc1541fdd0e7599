// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.DType;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;

/// Makes safetensors files for tests. All bytes of tensor number `i` have the value `i`.
final class HandmadeSafetensors {
  private final List<String> members = new ArrayList<>();
  private final ByteArrayOutputStream body = new ByteArrayOutputStream();

  HandmadeSafetensors metadata(String key, String value) {
    members.add("\"__metadata__\":{" + quoted(key) + ":" + quoted(value) + "}");
    return this;
  }

  HandmadeSafetensors tensor(String name, DType dtype, long... shape) {
    int begin = body.size();
    long bits = dtype.bits() * Arrays.stream(shape).reduce(1, Math::multiplyExact);
    byte[] fill = new byte[Math.toIntExact(bits / Byte.SIZE)];
    Arrays.fill(fill, (byte) members.size());
    body.writeBytes(fill);
    members.add(entry(name, dtype.name(), begin, body.size(), shape));
    return this;
  }

  static String entry(String name, String dtype, long begin, long end, long... shape) {
    String dimensions =
        Arrays.stream(shape).mapToObj(Long::toString).collect(Collectors.joining(","));
    return quoted(name)
        + (":{\"dtype\":\"" + dtype + "\",\"shape\":[" + dimensions + "]")
        + (",\"data_offsets\":[" + begin + "," + end + "]}");
  }

  /// Gives the header's members an order that is independent of the bytes' order.
  HandmadeSafetensors shuffle(Random random) {
    Collections.shuffle(members, random);
    return this;
  }

  byte[] toBytes() {
    return file("{" + String.join(",", members) + "}", body.toByteArray());
  }

  Path write(Path file) throws IOException {
    return Files.write(file, toBytes());
  }

  /// Returns a file with a header, which need not be valid.
  static byte[] file(String header, byte... body) {
    byte[] json = header.getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(Long.BYTES + json.length + body.length)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(json.length)
        .put(json)
        .put(body)
        .array();
  }

  /// Writes a file of one header of `headerBytes` bytes, padded with spaces, with `count` empty
  /// tensors whose names have 100 characters.
  static Path writeHuge(Path file, int count, long headerBytes) throws IOException {
    byte[] length =
        ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(headerBytes).array();
    try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file))) {
      out.write(length);
      long written = 0;
      String padding = "x".repeat(77);
      StringBuilder entry = new StringBuilder();
      for (int i = 0; i < count; i++) {
        entry.setLength(0);
        entry
            .append(i == 0 ? "{\"model.layers." : ",\"model.layers.")
            .append(1_000_000_000L + i)
            .append(padding)
            .append("\":{\"dtype\":\"BF16\",\"shape\":[0,")
            .append(i)
            .append("],\"data_offsets\":[0,0]}");
        out.write(entry.toString().getBytes(StandardCharsets.US_ASCII));
        written += entry.length();
      }
      out.write('}');
      for (written++; written < headerBytes; written++) {
        out.write(' ');
      }
    }
    return file;
  }

  static String quoted(String text) {
    StringBuilder json = new StringBuilder("\"");
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\' || c < 0x20) {
        json.append(String.format("\\u%04x", (int) c));
      } else {
        json.append(c);
      }
    }
    return json.append('"').toString();
  }
}
