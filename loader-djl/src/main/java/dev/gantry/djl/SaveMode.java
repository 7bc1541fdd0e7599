// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

/// Says when a save of a [CheckpointSaver] returns.
public enum SaveMode {
  /// The save returns when the checkpoint is on the disk.
  SYNC,

  /// The save returns when a snapshot is taken. Another thread writes it.
  ASYNC,

  /// The save returns before its snapshot is taken: the next forward and backward pass run meanwhile, and the
  /// trainer's next update of a parameter waits for the snapshot.
  ///
  /// Running means and variances, which a forward pass changes, are copied before the save returns, as are
  /// parameters of type `OTHER` without a gradient. So this mode is right for DJL's blocks, and for yours if
  /// their forward pass changes no other parameters. Call [CheckpointSaver#awaitSnapshot] before you change
  /// parameters otherwise than by `Trainer#step`. If an operator of libtorch 2.7 or newer changes one before
  /// the snapshot is complete, the save fails; changes through other code go unnoticed.
  OVERLAPPED
}
