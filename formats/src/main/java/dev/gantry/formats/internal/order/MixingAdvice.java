// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.formats.Shuffle;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Warns, once for a dataset, if a shuffle leaves its samples almost in the order of the files: a
/// training on sorted files then learns worse without any error. Thread-safe.
public final class MixingAdvice {
  private static final Logger LOG = LoggerFactory.getLogger(MixingAdvice.class);

  /// Samples from this many files come from several parts of a dataset, whatever it is sorted by.
  private static final int ENOUGH_FILES = 8;

  /// A buffer that holds less than one part in this many of an epoch leaves records near their
  /// original positions.
  private static final int ENOUGH_PART = 4;

  private final AtomicBoolean given = new AtomicBoolean();

  /// Advises when a dataset is opened.
  ///
  /// @param files how many files hold samples
  public static void ofFiles(Shuffle shuffle, long files) {
    if (shuffle instanceof Shuffle.Shards && files > 0 && files < ENOUGH_FILES) {
      LOG.warn(
          "optShuffle: Shuffle.Shards leaves the samples of each file as they are, and mixes"
              + " nothing with less than {} files (was {}): where files are sorted, by class for"
              + " one, call optShuffle(seed)",
          ENOUGH_FILES,
          files);
    }
  }

  /// Advises while an epoch is read.
  ///
  /// @param held how many records the shuffle buffer held when it was first filled
  /// @param files how many files these records are from
  /// @param read how many records the epoch has read so far
  public void ofBuffer(long held, long files, long read) {
    // This runs for each record: reading the flag first costs less than a compare-and-set.
    if (!given.get()
        && files < ENOUGH_FILES
        && held < read / ENOUGH_PART
        && !given.getAndSet(true)) {
      LOG.warn(
          "optShuffle: the shuffle buffer holds less than 1/{} of the epoch ({} records of {}"
              + " file(s)), so neighbours in the files come soon after one another: where files are"
              + " sorted, by class for one, call optIndex(IndexUse.BUILD), give withShuffleBuffer"
              + " of optRecords more, or read {} or more files at once by optInterleave",
          ENOUGH_PART,
          held,
          files,
          ENOUGH_FILES);
    }
  }
}
