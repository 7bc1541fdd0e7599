// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import dev.gantry.cli.internal.output.Json;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.HexFormat;

/// SHA-256 digests of any number of records, kept in order in a temporary file until it is known that all of the
/// records are good.
final class DigestSpool implements Json.Elements, AutoCloseable {
  static final int DIGEST_BYTES = 32;
  static final int BUFFER_BYTES = 4096 * DIGEST_BYTES;

  /// The file's name is deleted at once, so the file goes when it is closed, even if the process is killed.
  private final FileChannel file;

  private final OutputStream out;

  DigestSpool() {
    try {
      file =
          FileChannel.open(
              Files.createTempFile("gantry-digests-", ""),
              StandardOpenOption.READ,
              StandardOpenOption.WRITE,
              StandardOpenOption.DELETE_ON_CLOSE);
    } catch (IOException e) {
      throw new UncheckedIOException("digests cannot be kept", e);
    }
    out = new BufferedOutputStream(Channels.newOutputStream(file), BUFFER_BYTES);
  }

  void add(byte[] digest) {
    try {
      out.write(digest, 0, DIGEST_BYTES);
    } catch (IOException e) {
      throw new UncheckedIOException("digests cannot be kept", e);
    }
  }

  /// Gives all digests, in lower-case hexadecimal, in the order in which they were added.
  @Override
  public void forEach(Json.Taker taker) throws IOException {
    out.flush();
    InputStream in =
        new BufferedInputStream(Channels.newInputStream(file.position(0)), BUFFER_BYTES);
    for (byte[] digest = in.readNBytes(DIGEST_BYTES);
        digest.length == DIGEST_BYTES;
        digest = in.readNBytes(DIGEST_BYTES)) {
      taker.take(HexFormat.of().formatHex(digest));
    }
  }

  @Override
  public void close() {
    try {
      file.close();
    } catch (IOException e) {
      throw new UncheckedIOException("the temporary file of digests cannot be closed", e);
    }
  }
}
