// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import dev.gantry.cli.internal.output.Json;
import java.io.IOException;
import java.io.InputStream;
import java.util.HexFormat;

/// SHA-256 digests of any number of records, kept in order in a temporary file until it is known that all of the
/// records are good.
final class DigestSpool implements Json.Elements, AutoCloseable {
  static final int DIGEST_BYTES = 32;

  private final Spool spool = new Spool();

  void add(byte[] digest) {
    spool.add(out -> out.write(digest, 0, DIGEST_BYTES));
  }

  /// Gives all digests, in lower-case hexadecimal, in the order in which they were added.
  @Override
  public void forEach(Json.Taker taker) throws IOException {
    InputStream in = spool.read();
    for (byte[] digest = in.readNBytes(DIGEST_BYTES);
        digest.length == DIGEST_BYTES;
        digest = in.readNBytes(DIGEST_BYTES)) {
      taker.take(HexFormat.of().formatHex(digest));
    }
  }

  @Override
  public void close() {
    spool.close();
  }
}
