// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import java.util.Locale;

/// Where a file's bytes were before a run.
public enum Heat {
  /// All in the page cache.
  HOT,
  /// None in the page cache: it was dropped, and the kernel says that no page stayed.
  COLD,
  /// It does not matter.
  NONE;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
