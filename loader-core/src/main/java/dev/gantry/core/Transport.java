// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.util.Locale;

/// How bytes travel between files and memory.
public enum Transport {
  /// cuFile copies directly between disk and device memory.
  GDS,
  /// cuFile copies with the CPU, in its compatibility mode.
  COMPAT,
  /// The CPU reads into pinned buffers: the device copies from one buffer while the CPU fills the
  /// next.
  STAGED,
  /// The GPU copies from the page cache, whose pages are registered with the CUDA driver.
  MAPPED,
  /// The CPU copies between files and host memory.
  HOST;

  /// The name in reports and JSON: `gds`, `compat`, `staged`, `mapped` or `host`.
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
