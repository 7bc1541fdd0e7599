// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.internal.plan.StridedRange;
import java.util.List;

/// A piece of memory that a load allocates, and what of files fills it.
///
/// @param ranges which fill all of it, none twice
/// @param bytes its size
public record Sliced(List<StridedRange> ranges, long bytes) {
  public Sliced {
    ranges = List.copyOf(ranges);
  }
}
