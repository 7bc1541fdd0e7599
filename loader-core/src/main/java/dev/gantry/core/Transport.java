package dev.gantry.core;

import java.util.Locale;

/// How bytes travel.
public enum Transport {
  /// cuFile, from the disk straight into device memory.
  GDS,
  /// cuFile, through the CPU.
  COMPAT,
  /// Our own ring of pinned buffers, from which the device copies while the next is read.
  STAGED,
  /// Into memory of the CPU.
  HOST;

  /// As people and JSON write it: `gds`, `compat`, `staged`, `host`.
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
