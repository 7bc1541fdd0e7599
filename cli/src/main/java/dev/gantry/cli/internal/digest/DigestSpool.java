// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import dev.gantry.cli.internal.output.Json;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;

/// SHA-256 digests of any number of records, kept in order until it is known that all of the
/// records are good: some in memory, the others in a temporary file.
final class DigestSpool implements Json.Elements, AutoCloseable {
  static final int DIGEST_BYTES = 32;

  /// How many are in memory.
  static final int WINDOW = 4096;

  /// Those that are not in the file.
  private final ByteBuffer window = ByteBuffer.allocate(WINDOW * DIGEST_BYTES);

  private @Nullable FileChannel file;

  void add(byte[] digest) {
    try {
      if (!window.hasRemaining()) {
        spill();
      }
    } catch (IOException e) {
      throw new UncheckedIOException("digests cannot be kept", e);
    }
    window.put(digest, 0, DIGEST_BYTES);
  }

  private void spill() throws IOException {
    FileChannel out = file;
    if (out == null) {
      Path path = Files.createTempFile("gantry-digests-", "");
      out = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE);
      file = out;
      // It lives as long as it is open, also where the process is killed.
      Files.delete(path);
    }
    window.flip();
    while (window.hasRemaining()) {
      int _ = out.write(window);
    }
    window.clear();
  }

  /// Gives all digests, in lower-case hexadecimal, in the order in which they were added.
  @Override
  public void forEach(Json.Taker taker) throws IOException {
    FileChannel spilled = file;
    if (spilled != null) {
      ByteBuffer part = ByteBuffer.allocate(WINDOW * DIGEST_BYTES);
      for (long at = 0; at < spilled.size(); at += part.capacity()) {
        part.clear();
        while (part.hasRemaining()) {
          if (spilled.read(part, at + part.position()) < 0) {
            throw new EOFException("the temporary file of digests was cut");
          }
        }
        give(part.flip(), taker);
      }
    }
    give(window.duplicate().flip(), taker);
  }

  private static void give(ByteBuffer digests, Json.Taker taker) throws IOException {
    byte[] digest = new byte[DIGEST_BYTES];
    while (digests.hasRemaining()) {
      digests.get(digest);
      taker.take(HexFormat.of().formatHex(digest));
    }
  }

  @Override
  public void close() {
    try {
      if (file != null) {
        file.close();
      }
    } catch (IOException e) {
      throw new UncheckedIOException("the temporary file of digests cannot be closed", e);
    }
  }
}
