// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.formats.Shuffle;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Warns, once for a dataset, that a shuffle leaves its samples almost in the order of the files: a training on
/// sorted files then learns worse, and nothing fails. Thread-safe.
public final class MixingAdvice {
  private static final Logger LOG = LoggerFactory.getLogger(MixingAdvice.class);

  /// Samples of so many files come from several places of the dataset, whatever it is sorted by.
  private static final int ENOUGH_FILES = 8;

  /// A buffer that holds less than this part of an epoch gives records near where they were.
  private static final int ENOUGH_PART = 4;

  private final AtomicBoolean given = new AtomicBoolean();

  /// When a dataset is opened.
  ///
  /// @param files that hold samples
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

  /// While an epoch is read.
  ///
  /// @param held records that the shuffle buffer took at its beginning
  /// @param files that these are from
  /// @param read records that it has had so far
  public void ofBuffer(long held, long files, long read) {
    // This is asked for each record: a look at the flag costs less than taking it.
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
