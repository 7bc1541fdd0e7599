// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.TreeMap;

/// Interleaves the samples of several data files that are open at once, each in one of a fixed
/// number of places. In each round, every place gives a block of its file's samples, or the file's
/// remaining samples. If a file ends, another file is opened in its place in the next round.
///
/// A file is open for as many rounds as it has blocks, so all rounds are known beforehand: between the
/// rounds in which files begin or end, each gives the same number of samples. It takes memory for a few
/// numbers per file.
final class InterleavedSequence implements SampleSequence {
  private final FileSequence files;
  private final int block;

  /// The data files of each place, in their order.
  private final int[][] places;

  /// The round in which each data file begins.
  private final long[] begins;

  /// For each change in the number of samples per round: the round, its first position, and the number.
  private final long[] rounds;

  private final long[] positions;
  private final long[] samples;

  /// @param open places, 2 up to the number of data files
  InterleavedSequence(FileSequence files, int open, int block) {
    this.files = files;
    this.block = block;
    this.begins = new long[files.files()];
    this.places = assign(open);
    Map<Long, Long> changes = changes();
    this.rounds = changes.keySet().stream().mapToLong(Long::longValue).toArray();
    this.samples = changes.values().stream().mapToLong(Long::longValue).toArray();
    Arrays.parallelPrefix(samples, Long::sum);
    this.positions = new long[rounds.length];
    for (int i = 1; i < rounds.length; i++) {
      positions[i] = positions[i - 1] + samples[i - 1] * (rounds[i] - rounds[i - 1]);
    }
  }

  @Override
  public long size() {
    return files.size();
  }

  private record Free(long round, int place) {}

  private int[][] assign(int open) {
    PriorityQueue<Free> free =
        new PriorityQueue<>(Comparator.comparingLong(Free::round).thenComparingInt(Free::place));
    List<List<Integer>> assigned = new ArrayList<>();
    for (int place = 0; place < open; place++) {
      free.add(new Free(0, place));
      assigned.add(new ArrayList<>());
    }
    for (int i = 0; i < files.files(); i++) {
      Free first = free.remove();
      begins[i] = first.round();
      assigned.get(first.place()).add(i);
      free.add(new Free(end(i), first.place()));
    }
    return assigned.stream()
        .map(list -> list.stream().mapToInt(Integer::intValue).toArray())
        .toArray(int[][]::new);
  }

  /// The round after the last one of a data file.
  private long end(int i) {
    return begins[i] + Math.ceilDiv(files.samples(i), (long) block);
  }

  /// Returns by how much the number of samples per round changes, by round.
  private Map<Long, Long> changes() {
    Map<Long, Long> changes = new TreeMap<>();
    for (int i = 0; i < files.files(); i++) {
      long last = files.samples(i) - (end(i) - 1 - begins[i]) * block;
      changes.merge(begins[i], (long) block, Long::sum);
      changes.merge(end(i) - 1, last - block, Long::sum);
      changes.merge(end(i), -last, Long::sum);
    }
    return changes;
  }

  @Override
  public void collect(long position, long count, RunCollector runs) {
    int found = Arrays.binarySearch(positions, position);
    int change = found < 0 ? -found - 2 : found;
    long since = position - positions[change];
    long round = rounds[change] + since / samples[change];
    new Walk(round).collect(since % samples[change], count, runs);
  }

  /// Goes from place to place, round after round.
  private final class Walk {
    private long round;

    /// The places that are open in the round, and for each place the index of its data file.
    private final int[] open = new int[places.length];

    private final int[] at = new int[places.length];
    private int count;

    Walk(long round) {
      this.round = round;
      for (int place = 0; place < places.length; place++) {
        at[place] = lastBegun(places[place]);
        if (round < end(places[place][at[place]])) {
          open[count++] = place;
        }
      }
    }

    private int lastBegun(int[] filesOfPlace) {
      int low = 0;
      int high = filesOfPlace.length - 1;
      while (low < high) {
        int middle = (low + high + 1) >>> 1;
        if (begins[filesOfPlace[middle]] <= round) {
          low = middle;
        } else {
          high = middle - 1;
        }
      }
      return low;
    }

    /// @param skip how many samples of the round to skip
    void collect(long skip, long wanted, RunCollector runs) {
      long toSkip = skip;
      long left = wanted;
      while (left > 0) {
        int stillOpen = 0;
        for (int i = 0; i < count && left > 0; i++) {
          int place = open[i];
          int file = places[place][at[place]];
          long first = (round - begins[file]) * block;
          long rest = files.samples(file) - first;
          // The last data file, once it is alone, gives all of its samples at once.
          long given = count == 1 ? rest : Math.min(block, rest);
          long skipped = Math.min(toSkip, given);
          long taken = Math.min(left, given - skipped);
          toSkip -= skipped;
          left -= taken;
          if (taken > 0) {
            runs.add(files.file(file), first + skipped, taken);
          }
          if (given < rest || ++at[place] < places[place].length) {
            open[stillOpen++] = place;
          }
        }
        count = stillOpen;
        round++;
      }
    }
  }
}
