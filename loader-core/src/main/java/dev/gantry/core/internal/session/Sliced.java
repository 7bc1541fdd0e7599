// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.internal.plan.Strip;
import java.util.List;

/// A piece of memory that a load allocates, and what of files fills it.
///
/// @param strips which fill all of it, none twice
/// @param bytes its size
public record Sliced(List<Strip> strips, long bytes) {
  public Sliced {
    strips = List.copyOf(strips);
  }
}
