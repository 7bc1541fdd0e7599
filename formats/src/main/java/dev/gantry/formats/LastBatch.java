// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats;

/// Says what becomes of an epoch's last samples where they do not fill a batch on every rank.
public enum LastBatch {
  /// The samples make a smaller last batch on each rank, shared as evenly as possible. Where there are
  /// fewer samples than ranks, samples from the epoch's beginning are used again.
  KEEP,
  /// The samples are left out. A shuffled epoch leaves out others than the one before it.
  DROP,
  /// Samples from the epoch's beginning fill the last batch up.
  PAD
}
