// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.formats.spi.SampleRun;
import java.util.ArrayList;
import java.util.List;

/// Collects a batch's runs, and merges runs that continue each other in a data file.
final class RunCollector {
  private static final long MAX_EXPECTED = 1 << 14;

  private final List<SampleRun> runs;
  private int file;
  private long first;
  private int count;

  /// @param samples how many samples will be added; in random order each is a run
  RunCollector(long samples) {
    runs = new ArrayList<>((int) Math.min(samples, MAX_EXPECTED));
  }

  /// @param samples how many samples, 1 or more; a batch's samples fit an int
  void add(int file, long first, long samples) {
    if (count > 0 && file == this.file && first == this.first + count) {
      count = Math.toIntExact(count + samples);
      return;
    }
    flush();
    this.file = file;
    this.first = first;
    this.count = Math.toIntExact(samples);
  }

  List<SampleRun> runs() {
    flush();
    return List.copyOf(runs);
  }

  private void flush() {
    if (count > 0) {
      runs.add(new SampleRun(file, first, count));
      count = 0;
    }
  }
}
