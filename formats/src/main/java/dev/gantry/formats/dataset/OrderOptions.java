package dev.gantry.formats.dataset;

/// Which samples come when, and to whom.
///
/// @param batchSize samples in a batch of one rank
/// @param interleave shards that are read in turn, `interleaveBlock` samples of each; 1 for one
///     shard after the other. Not with [Shuffle.Blocks], which mixes shards anyway
/// @param rank this worker's number, from 0
/// @param world how many workers there are; all have the same number of batches
public record OrderOptions(
    int batchSize,
    LastBatch lastBatch,
    Shuffle shuffle,
    int interleave,
    int interleaveBlock,
    int rank,
    int world) {
  /// The most samples that a batch may have.
  public static final int MOST_BATCH_SIZE = 1 << 24;

  public OrderOptions {
    if (batchSize < 1 || batchSize > MOST_BATCH_SIZE) {
      throw new IllegalArgumentException("batch size must be 1 to 2^24: " + batchSize);
    }
    if (interleave < 1 || interleaveBlock < 1) {
      throw new IllegalArgumentException(
          "interleave " + interleaveBlock + " of " + interleave + " shards");
    }
    if (interleave > 1 && shuffle instanceof Shuffle.Blocks) {
      throw new IllegalArgumentException("blocks in random order are interleaved already");
    }
    if (world < 1 || rank < 0 || rank >= world) {
      throw new IllegalArgumentException("rank " + rank + " of " + world);
    }
  }

  /// The order of the files, for one worker.
  public static OrderOptions of(int batchSize) {
    return new OrderOptions(batchSize, LastBatch.KEEP, new Shuffle.None(), 1, 1, 0, 1);
  }
}
