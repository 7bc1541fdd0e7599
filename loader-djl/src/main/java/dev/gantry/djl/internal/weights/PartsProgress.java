// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import dev.gantry.core.internal.transport.TransferOptions;
import java.util.stream.LongStream;

/// Tells a load's listener of the bytes of all its parts together. A part's reads take the blocks at its
/// edges too, which do not count. Thread-safe.
final class PartsProgress {
  private final TransferOptions options;
  private final long[] bytes;
  private final long[] done;
  private final long total;

  /// @param options of each part
  /// @param bytes of each part
  /// @param moreBytes that the load reads after the parts
  PartsProgress(TransferOptions options, long[] bytes, long moreBytes) {
    this.options = options;
    this.bytes = bytes.clone();
    done = new long[bytes.length];
    total = LongStream.of(bytes).sum() + moreBytes;
  }

  /// The options of one part.
  TransferOptions of(int part) {
    return options.withProgress((now, _) -> tell(part, now));
  }

  private synchronized void tell(int part, long now) {
    done[part] = Math.min(now, bytes[part]);
    options.progress().onProgress(LongStream.of(done).sum(), total);
  }
}
