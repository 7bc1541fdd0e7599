// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.util.Locale;

/// How bytes travel between files and memory.
public enum Transport {
  /// cuFile, directly between disk and device memory.
  GDS,
  /// cuFile, with the CPU copying.
  COMPAT,
  /// Pinned buffers: the device copies from one while the next is read.
  STAGED,
  /// The GPU fetches from a page cache that is registered with the driver.
  MAPPED,
  /// Between files and host memory.
  HOST;

  /// As written in reports and JSON: `gds`, `compat`, `staged`, `mapped`, `host`.
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
