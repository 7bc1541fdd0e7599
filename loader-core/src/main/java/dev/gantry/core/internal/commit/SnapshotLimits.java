// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.MisuseException;

/// The most memory that all snapshots together may take.
///
/// @param deviceBytes the most bytes on each device. A copy within the device takes a fraction of
///     the time of a copy to the host
/// @param hostBytes the most bytes of host memory, which is pinned if the bytes come from a device
public record SnapshotLimits(long deviceBytes, long hostBytes) {
  /// No memory on devices, and seven eighths of the available host memory.
  public static final SnapshotLimits DEFAULT = new SnapshotLimits(0, Long.MAX_VALUE);

  public SnapshotLimits {
    MisuseException.requireRange("optSnapshots: deviceBytes", deviceBytes, 0, Long.MAX_VALUE);
    MisuseException.requireRange("optSnapshots: hostBytes", hostBytes, 0, Long.MAX_VALUE);
  }
}
