// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import java.util.Arrays;
import java.util.List;

/// The samples of one data file after another.
final class FileSequence implements SampleSequence {
  private final int[] files;

  /// The position of each data file's first sample, and the number of all samples.
  private final long[] starts;

  /// @param files the files' numbers in their order, none of them empty
  FileSequence(int[] files, List<Long> fileSamples) {
    this.files = files;
    this.starts = new long[files.length + 1];
    for (int i = 0; i < files.length; i++) {
      long samples = fileSamples.get(files[i]);
      if (samples < 0 || samples > EpochOrder.MAX_SAMPLES - starts[i]) {
        throw new MisuseException("samples of shards out of range: " + fileSamples);
      }
      starts[i + 1] = starts[i] + samples;
    }
  }

  @Override
  public long size() {
    return starts[files.length];
  }

  int files() {
    return files.length;
  }

  /// The number of the data file at `place` in the dataset.
  int file(int place) {
    return files[place];
  }

  long samples(int place) {
    return starts[place + 1] - starts[place];
  }

  @Override
  public void collect(long position, long count, RunCollector runs) {
    int found = Arrays.binarySearch(starts, position);
    int place = found < 0 ? -found - 2 : found;
    long at = position;
    long end = position + count;
    while (at < end) {
      long until = Math.min(end, starts[place + 1]);
      runs.add(files[place], at - starts[place], until - at);
      at = until;
      place++;
    }
  }
}
