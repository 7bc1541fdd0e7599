// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

/// When a save of a [CheckpointSaver] returns.
public enum SaveMode {
  /// When the checkpoint is on the disk.
  SYNC,

  /// When a snapshot is taken. Another thread writes it.
  ASYNC,

  /// Before its snapshot is taken: the next forward and backward pass run meanwhile, and the trainer's next
  /// update of a parameter waits for the snapshot.
  ///
  /// Running means and variances, which a forward pass changes, are copied before the save returns, as
  /// are parameters of type `OTHER` without a gradient. So this is right for DJL's blocks, and for yours
  /// if their forward pass changes no parameters but such. Call [CheckpointSaver#awaitSnapshot] before
  /// you change parameters otherwise than by `Trainer#step`.
  OVERLAPPED
}
