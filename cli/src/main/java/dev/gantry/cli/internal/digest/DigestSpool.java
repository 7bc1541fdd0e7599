// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import dev.gantry.cli.internal.output.Json;
import java.io.IOException;
import java.io.InputStream;
import java.util.HexFormat;

/// Keeps the SHA-256 digests of any number of records, in the records' order, in a temporary
/// file. They are printed only after all records have been checked.
final class DigestSpool implements Json.Elements, AutoCloseable {
  static final int DIGEST_BYTES = 32;

  private final Spool spool = new Spool();

  void add(byte[] digest) {
    spool.add(out -> out.write(digest, 0, DIGEST_BYTES));
  }

  /// Passes all digests to `taker`, in lower-case hexadecimal and in the order in which they were
  /// added.
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
