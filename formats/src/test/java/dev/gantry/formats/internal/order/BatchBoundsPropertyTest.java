// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.spi.SampleRun;
import java.util.List;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.LongRange;

class BatchBoundsPropertyTest {
  @Provide
  Arbitrary<List<Long>> shards() {
    return Orders.shards();
  }

  @Provide
  Arbitrary<OrderOptions> options() {
    return Orders.options();
  }

  @Property(tries = 4000)
  void noBatchHasMore(
      @ForAll("shards") List<Long> shards,
      @ForAll("options") OrderOptions options,
      @ForAll @LongRange(max = 1000) long epoch) {
    BatchBounds bounds = BatchBounds.of(shards, options);
    for (int rank = 0; rank < options.world(); rank++) {
      OrderOptions ofRank = Orders.ranked(options, rank, options.world());
      EpochOrder order = EpochOrder.of(shards, ofRank, epoch);
      for (long batch = 0; batch < order.batches(); batch++) {
        List<SampleRun> runs = order.batch(batch);
        assertThat(runs).hasSizeLessThanOrEqualTo(bounds.runs());
        assertThat(Orders.samples(runs)).hasSizeLessThanOrEqualTo(bounds.samples());
      }
    }
  }

  private static BatchBounds bounds(
      int batchSize, LastBatch last, Shuffle shuffle, int interleave, Long... shards) {
    return BatchBounds.of(
        List.of(shards), new OrderOptions(batchSize, last, shuffle, interleave, 16, 0, 1));
  }

  @Example
  void inTheOrderOfTheFilesFewRunsAreEnough() {
    Shuffle none = new Shuffle.None();
    // Batches end where shards end.
    assertThat(bounds(32, LastBatch.KEEP, none, 1, 64L, 320L, 77L).runs()).isEqualTo(1);
    assertThat(bounds(32, LastBatch.KEEP, new Shuffle.Shards(1), 1, 64L, 320L).runs()).isEqualTo(1);
    // One shard ends within a batch.
    assertThat(bounds(32, LastBatch.KEEP, none, 1, 65L, 320L).runs()).isEqualTo(2);
    // Two shards end within a batch: its 32 samples may begin with the last of 40 samples,
    // followed by all of 30.
    assertThat(bounds(32, LastBatch.KEEP, none, 1, 40L, 30L, 100L).runs()).isEqualTo(3);
    assertThat(bounds(32, LastBatch.KEEP, none, 1, 40L, 31L, 100L).runs()).isEqualTo(2);
    // The last batch is padded from the beginning of the epoch.
    assertThat(bounds(32, LastBatch.PAD, none, 1, 100L).runs()).isEqualTo(2);
    assertThat(bounds(32, LastBatch.DROP, none, 1, 100L).runs()).isEqualTo(1);
  }

  @Example
  void aShardThatNoneTakesTurnsWithIsReadAsItLies() {
    for (Shuffle shuffle : List.of(new Shuffle.None(), new Shuffle.Shards(1))) {
      assertThat(bounds(32, LastBatch.KEEP, shuffle, 4, 0L, 320L, 0L).runs()).isEqualTo(1);
      assertThat(bounds(32, LastBatch.KEEP, shuffle, 4, 320L, 320L).runs()).isGreaterThan(1);
    }
  }

  @Example
  void blocksAreRunsButWhereShardsEnd() {
    Shuffle blocks = new Shuffle.Blocks(1, 16);
    assertThat(bounds(64, LastBatch.KEEP, blocks, 1, 1000L).runs()).isEqualTo(4 + 1);
    assertThat(bounds(64, LastBatch.KEEP, blocks, 1, 1000L, 1000L).runs()).isEqualTo(4 + 2);
    Long[] many = IntStream.range(0, 100).mapToObj(_ -> 500L).toArray(Long[]::new);
    assertThat(bounds(64, LastBatch.KEEP, blocks, 1, many).runs()).isEqualTo(4 * 2);
  }

  /// A batch of 5 samples may have 2 samples of a block up to the end of the files, 1 sample from
  /// their beginning on, the short block, and the first sample of the epoch.
  @Example
  void theShortBlockMayBeAmidABatch() {
    List<Long> shards = List.of(9L);
    OrderOptions options = new OrderOptions(5, LastBatch.PAD, new Shuffle.Blocks(1, 4), 1, 1, 0, 1);
    int most =
        IntStream.range(0, 200)
            .map(epoch -> EpochOrder.of(shards, options, epoch).batch(1).size())
            .max()
            .orElseThrow();
    assertThat(most).isEqualTo(4).isLessThanOrEqualTo(BatchBounds.of(shards, options).runs());
  }

  @Example
  void fewSamplesMakeSmallBatches() {
    assertThat(bounds(64, LastBatch.KEEP, new Shuffle.None(), 1, 10L))
        .isEqualTo(new BatchBounds(10, 1));
    assertThat(bounds(64, LastBatch.DROP, new Shuffle.None(), 1, 10L))
        .isEqualTo(new BatchBounds(0, 0));
    assertThat(bounds(64, LastBatch.PAD, new Shuffle.None(), 1, 10L).samples()).isEqualTo(64);
  }
}
