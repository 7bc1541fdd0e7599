// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.checkpoint;

/// Says what becomes of a save that is asked for while another save is being written.
public enum BusyPolicy {
  /// The save waits until the other one is on the disk.
  WAIT,
  /// The save is skipped.
  SKIP,
  /// The save's snapshot is taken at once, if there is memory for one more, and written after the other
  /// one. A third save waits.
  QUEUE
}
