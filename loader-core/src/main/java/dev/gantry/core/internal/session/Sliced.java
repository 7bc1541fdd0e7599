// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.StridedRange;
import java.util.List;
import java.util.stream.Stream;

/// A piece of memory that a load allocates, and the ranges of files that fill it.
///
/// @param ranges the ranges, which together fill every byte of the piece exactly once
/// @param bytes the size of the piece
public record Sliced(List<StridedRange> ranges, long bytes) {
  public Sliced {
    ranges = List.copyOf(ranges);
  }

  Stream<Location> files() {
    return ranges.stream().map(StridedRange::file);
  }
}
