// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.formats.LastBatch;
import java.util.List;

/// Upper bounds of every batch of every epoch, from which a slot's memory is computed.
///
/// @param samples the most samples of a batch
/// @param runs the most runs of consecutive samples in a batch
public record BatchBounds(int samples, int runs) {
  public static BatchBounds of(List<Long> fileSamples, OrderOptions options) {
    long total = fileSamples.stream().mapToLong(Long::longValue).sum();
    int samples = mostSamples(total, options);
    return new BatchBounds(samples, RunBound.of(fileSamples, options, samples));
  }

  private static int mostSamples(long total, OrderOptions options) {
    long round = (long) options.batchSize() * options.world();
    if (total >= round || (total > 0 && options.lastBatch() == LastBatch.PAD)) {
      return options.batchSize();
    }
    return options.lastBatch() == LastBatch.KEEP
        ? (int) Math.ceilDiv(total, (long) options.world())
        : 0;
  }
}
