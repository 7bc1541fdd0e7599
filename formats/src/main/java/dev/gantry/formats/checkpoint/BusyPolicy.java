// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.checkpoint;

/// The treatment of a save that is asked for while another is being written.
public enum BusyPolicy {
  /// It waits until the other is on the disk.
  WAIT,
  /// It is not made.
  SKIP,
  /// Its snapshot is taken at once, if there is memory for one more, and written after the other. A
  /// third one waits.
  QUEUE
}
