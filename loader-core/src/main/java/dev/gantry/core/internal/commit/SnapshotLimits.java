package dev.gantry.core.internal.commit;

import dev.gantry.core.MisuseException;

/// How much memory snapshots may take, all of them together.
///
/// @param deviceBytes on each device: a copy there is made in a fraction of the time, if the device
///     has that much to spare
/// @param hostBytes of the CPU, pinned where the bytes come from a device
public record SnapshotLimits(long deviceBytes, long hostBytes) {
  /// None on devices, seven eighths of what the CPU has to give.
  public static final SnapshotLimits DEFAULT = new SnapshotLimits(0, Long.MAX_VALUE);

  public SnapshotLimits {
    MisuseException.requireRange("deviceBytes", deviceBytes, 0, Long.MAX_VALUE);
    MisuseException.requireRange("hostBytes", hostBytes, 0, Long.MAX_VALUE);
  }
}
