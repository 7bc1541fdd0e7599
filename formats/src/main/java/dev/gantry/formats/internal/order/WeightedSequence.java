// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

/// Draws samples in proportion to their weights, as many as the dataset has; a sample may be drawn
/// several times, or never.
record WeightedSequence(FileSequence files, SampleWeights weights, long epoch)
    implements SampleSequence {
  @Override
  public long size() {
    return files.size();
  }

  @Override
  public void collect(long position, long count, RunCollector runs) {
    for (long draw = position; draw < position + count; draw++) {
      files.collect(weights.sample(epoch, draw), 1, runs);
    }
  }
}
