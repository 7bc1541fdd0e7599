// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import static dev.gantry.core.internal.plan.PlanLimits.ceiling;
import static dev.gantry.core.internal.plan.PlanLimits.floor;

import dev.gantry.core.Location;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Joins ranges of files that lie near each other to runs, each of which is read as a whole. A
/// range's number is its index in the request. For 20,000 tensors, numbers in an array for each
/// file take little memory.
abstract class Runs {
  private final Map<Location, Group> groups = new LinkedHashMap<>();
  private Group group = new Group();
  private @Nullable Location file;

  abstract long start(int range);

  abstract long end(int range);

  /// Receives a run.
  ///
  /// @param end where the run's last range ends in the file
  /// @param ranges numbers of ranges in the order of the file; the run has the ranges from index
  ///     `first` to before `next`
  abstract void run(Location file, long end, int[] ranges, int first, int next);

  /// Adds a range of one byte or more.
  final void add(int range, Location in) {
    if (!in.equals(file)) {
      file = in;
      group = groups.computeIfAbsent(in, _ -> new Group());
    }
    group.add(range);
  }

  /// Makes the runs, file by file.
  ///
  /// @param gapBytes the most unwanted bytes between two ranges of a run
  /// @param runBytes the most bytes of a run, unless ranges overlap
  final void join(long gapBytes, long runBytes) {
    groups.forEach((each, of) -> join(each, of.sorted(), gapBytes, runBytes));
  }

  private void join(Location each, int[] ranges, long gapBytes, long runBytes) {
    for (int first = 0; first < ranges.length; ) {
      long begin = floor(start(ranges[first]));
      long end = end(ranges[first]);
      int next = first + 1;
      while (next < ranges.length) {
        long start = start(ranges[next]);
        long newEnd = Math.max(end, end(ranges[next]));
        // Ranges that overlap always join, so that no byte is read twice.
        if (start >= end
            && (floor(start) - ceiling(end) > gapBytes || ceiling(newEnd) - begin > runBytes)) {
          break;
        }
        end = newEnd;
        next++;
      }
      run(each, end, ranges, first, next);
      first = next;
    }
  }

  /// The ranges of one file. Most requests have them in the order of the file already. Then they
  /// are not sorted, since sorting would take longer than all other planning.
  private final class Group {
    private int[] ranges = {};
    private int count;
    private boolean inOrder = true;
    private long lastStart;
    private long lastEnd;

    void add(int range) {
      if (count == ranges.length) {
        ranges = Arrays.copyOf(ranges, Math.max(16, 2 * count));
      }
      long start = start(range);
      long end = end(range);
      inOrder &= start > lastStart || (start == lastStart && end >= lastEnd);
      lastStart = start;
      lastEnd = end;
      ranges[count++] = range;
    }

    /// The ranges sorted by start, then by end, then by their order in the request.
    int[] sorted() {
      return inOrder
          ? Arrays.copyOf(ranges, count)
          : Arrays.stream(ranges, 0, count)
              .boxed()
              .sorted(
                  Comparator.comparingLong((Integer i) -> start(i)).thenComparingLong(i -> end(i)))
              .mapToInt(Integer::intValue)
              .toArray();
    }
  }
}
