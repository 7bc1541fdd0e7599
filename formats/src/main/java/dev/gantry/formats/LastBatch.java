// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats;

/// The use of an epoch's samples that do not fill a batch on every rank.
public enum LastBatch {
  /// They make a last batch that is smaller, shared among the ranks as evenly as possible. Where
  /// there are fewer of them than ranks, samples from the epoch's beginning make up for it.
  KEEP,
  /// They are left out. The next epoch leaves out others, if it is shuffled.
  DROP,
  /// Samples from the epoch's beginning fill the last batch up.
  PAD
}
