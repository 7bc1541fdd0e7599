// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.order.Orders.Sample;
import dev.gantry.formats.spi.SampleRun;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Assume;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.LongRange;

class EpochOrderPropertyTest {
  @Provide
  Arbitrary<List<Long>> shards() {
    return Orders.shards();
  }

  @Provide
  Arbitrary<OrderOptions> options() {
    return Orders.options();
  }

  private static List<EpochOrder> ranks(List<Long> shards, OrderOptions options, long epoch) {
    return IntStream.range(0, options.world())
        .mapToObj(rank -> Orders.ranked(options, rank, options.world()))
        .map(ofRank -> EpochOrder.of(shards, ofRank, epoch))
        .toList();
  }

  @Property
  void everySampleComesOnceAnEpoch(
      @ForAll("shards") List<Long> shards,
      @ForAll("options") OrderOptions options,
      @ForAll @LongRange(max = 1000) long epoch) {
    assertThat(Orders.epoch(shards, options, epoch))
        .containsExactlyInAnyOrderElementsOf(Orders.all(shards));
  }

  /// For each kind of last batch: the batches of the ranks, in turns, have the epoch's samples in
  /// order.
  @Property
  void ranksTakeTurns(
      @ForAll("shards") List<Long> shards,
      @ForAll("options") OrderOptions options,
      @ForAll @LongRange(max = 1000) long epoch) {
    List<Sample> samples = Orders.epoch(shards, options, epoch);
    List<EpochOrder> ranks = ranks(shards, options, epoch);
    int round = options.batchSize() * options.world();
    int rounds = samples.size() / round;
    List<Sample> dealt = new ArrayList<>();
    for (int batch = 0; batch < rounds; batch++) {
      for (EpochOrder rank : ranks) {
        List<Sample> taken = Orders.samples(rank.batch(batch));
        assertThat(taken).hasSize(options.batchSize());
        dealt.addAll(taken);
      }
    }
    assertThat(dealt).isEqualTo(samples.subList(0, rounds * round));
  }

  @Property
  void restIsSharedDroppedOrFilledUp(
      @ForAll("shards") List<Long> shards,
      @ForAll("options") OrderOptions options,
      @ForAll @LongRange(max = 1000) long epoch) {
    List<Sample> samples = Orders.epoch(shards, options, epoch);
    List<EpochOrder> ranks = ranks(shards, options, epoch);
    int round = options.batchSize() * options.world();
    int rounds = samples.size() / round;
    List<Sample> rest = samples.subList(rounds * round, samples.size());
    boolean more = !rest.isEmpty() && options.lastBatch() != LastBatch.DROP;
    assertThat(ranks).allMatch(rank -> rank.batches() == rounds + (more ? 1 : 0));
    Assume.that(more);
    List<List<Sample>> last =
        ranks.stream().map(rank -> Orders.samples(rank.batch(rounds))).toList();
    List<Sample> all = last.stream().flatMap(List::stream).toList();
    int size = options.lastBatch() == LastBatch.PAD ? round : Math.max(rest.size(), ranks.size());
    List<Sample> expected = new ArrayList<>(rest);
    for (int i = 0; expected.size() < size; i++) {
      expected.add(samples.get(i % samples.size()));
    }
    assertThat(all).isEqualTo(expected);
    int[] sizes = last.stream().mapToInt(List::size).toArray();
    assertThat(Arrays.stream(sizes).max().orElseThrow() - Arrays.stream(sizes).min().orElseThrow())
        .isLessThanOrEqualTo(options.lastBatch() == LastBatch.PAD ? 0 : 1);
    assertThat(Arrays.stream(sizes)).allMatch(count -> count >= 1 && count <= options.batchSize());
  }

  @Property
  void aBatchIsTheSameWhateverWasAskedBefore(
      @ForAll("shards") List<Long> shards,
      @ForAll("options") OrderOptions options,
      @ForAll @LongRange(max = 1000) long epoch,
      @ForAll Random random) {
    EpochOrder order = EpochOrder.of(shards, options, epoch);
    List<List<SampleRun>> batches = new ArrayList<>();
    for (long i = 0; i < order.batches(); i++) {
      batches.add(order.batch(i));
    }
    for (int i = 0; i < 10 && !batches.isEmpty(); i++) {
      int index = random.nextInt(batches.size());
      assertThat(order.batch(index)).isEqualTo(batches.get(index));
      assertThat(EpochOrder.of(shards, options, epoch).batch(index)).isEqualTo(batches.get(index));
    }
    assertThatThrownBy(() -> order.batch(order.batches()))
        .isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Property
  void neighboursAreOneRun(
      @ForAll("shards") List<Long> shards, @ForAll("options") OrderOptions options) {
    EpochOrder order = EpochOrder.of(shards, options, 3);
    for (long batch = 0; batch < order.batches(); batch++) {
      List<SampleRun> runs = order.batch(batch);
      assertThat(runs).allMatch(run -> run.count() > 0);
      for (int i = 1; i < runs.size(); i++) {
        SampleRun before = runs.get(i - 1);
        assertThat(new Sample(before.file(), before.first() + before.count()))
            .isNotEqualTo(new Sample(runs.get(i).file(), runs.get(i).first()));
      }
    }
  }

  @Property
  void interleavingIsWhatAReaderOfOpenShardsDoes(
      @ForAll("shards") List<Long> shards,
      @ForAll @IntRange(min = 1, max = 8) int open,
      @ForAll @IntRange(min = 1, max = 50) int block) {
    OrderOptions options =
        new OrderOptions(7, LastBatch.KEEP, new Shuffle.None(), open, block, 0, 1);
    assertThat(Orders.epoch(shards, options, 0)).isEqualTo(interleaved(shards, open, block));
  }

  /// Computes the interleaved order one sample at a time.
  private static List<Sample> interleaved(List<Long> shards, int open, int block) {
    List<List<Sample>> waiting = new ArrayList<>();
    for (int shard = 0; shard < shards.size(); shard++) {
      int number = shard;
      List<Sample> ofShard =
          Orders.all(shards).stream().filter(sample -> sample.shard() == number).toList();
      if (!ofShard.isEmpty()) {
        waiting.add(new ArrayList<>(ofShard));
      }
    }
    List<List<Sample>> places = new ArrayList<>();
    while (places.size() < open && !waiting.isEmpty()) {
      places.add(waiting.removeFirst());
    }
    List<Sample> samples = new ArrayList<>();
    while (places.stream().anyMatch(place -> !place.isEmpty())) {
      for (int i = 0; i < places.size(); i++) {
        List<Sample> place = places.get(i);
        for (int taken = 0; taken < block && !place.isEmpty(); taken++) {
          samples.add(place.removeFirst());
        }
        if (place.isEmpty() && !waiting.isEmpty()) {
          places.set(i, waiting.removeFirst());
        }
      }
    }
    return samples;
  }

  /// Interleaving does not change a random order of samples or blocks.
  @Property
  void interleavingLeavesSamplesAndBlocksInRandomOrderAsTheyAre(
      @ForAll("shards") List<Long> shards, @ForAll long seed) {
    for (Shuffle shuffle : List.of(new Shuffle.Samples(seed), new Shuffle.Blocks(seed, 3))) {
      OrderOptions alone = new OrderOptions(5, LastBatch.KEEP, shuffle, 1, 1, 0, 1);
      OrderOptions inTurn = new OrderOptions(5, LastBatch.KEEP, shuffle, 3, 2, 0, 1);
      assertThat(Orders.epoch(shards, inTurn, 1)).isEqualTo(Orders.epoch(shards, alone, 1));
    }
  }

  /// Blocks are consecutive samples of the files, counted from any sample on; the short block is
  /// the last one.
  @Property
  void blocksStayWhole(
      @ForAll("shards") List<Long> shards,
      @ForAll @IntRange(min = 1, max = 12) int block,
      @ForAll long seed,
      @ForAll @LongRange(max = 1000) long epoch) {
    List<Sample> files = Orders.all(shards);
    OrderOptions options =
        new OrderOptions(5, LastBatch.KEEP, new Shuffle.Blocks(seed, block), 1, 1, 0, 1);
    List<Sample> samples = Orders.epoch(shards, options, epoch);
    for (int i = 0; i < samples.size(); i++) {
      if (i % block != 0) {
        int before = files.indexOf(samples.get(i - 1));
        assertThat(samples.get(i)).isEqualTo(files.get((before + 1) % files.size()));
      }
    }
  }

  @Property
  void noSizeOverflows(
      @ForAll @LongRange(min = 1, max = EpochOrder.MAX_SAMPLES) long samples,
      @ForAll @LongRange(max = Long.MAX_VALUE) long cut,
      @ForAll("options") OrderOptions options,
      @ForAll @LongRange(max = Long.MAX_VALUE) long epoch) {
    List<Long> shards = List.of(cut % samples, samples - cut % samples);
    int batchSize = 1 << 24;
    for (int world : new int[] {1, Integer.MAX_VALUE}) {
      for (LastBatch last : LastBatch.values()) {
        // A batch must not have millions of samples, because the runs of each batch are listed.
        OrderOptions large =
            new OrderOptions(
                options.shuffle() instanceof Shuffle.Blocks
                        || options.shuffle() instanceof Shuffle.Samples
                        || samples < batchSize
                    ? options.batchSize()
                    : batchSize,
                last,
                options.shuffle(),
                options.interleave(),
                1 << 20,
                world - 1,
                world);
        EpochOrder order = EpochOrder.of(shards, large, epoch);
        if (order.batches() > 0) {
          for (long batch : new long[] {0, order.batches() / 2, order.batches() - 1}) {
            for (SampleRun run : order.batch(batch)) {
              assertThat(run.first()).isNotNegative();
              assertThat(run.first() + run.count()).isLessThanOrEqualTo(shards.get(run.file()));
            }
          }
        }
      }
    }
  }

  @Example
  void moreSamplesThanCanBeCountedAreRefused() {
    OrderOptions options = OrderOptions.of(1);
    for (List<Long> shards :
        List.of(List.of(EpochOrder.MAX_SAMPLES, 1L), List.of(3L, -1L), List.of(Long.MAX_VALUE))) {
      assertThatThrownBy(() -> EpochOrder.of(shards, options, 0))
          .isInstanceOf(MisuseException.class);
    }
  }

  /// Over many epochs, the mean position of each sample is near the middle, and the orders of two
  /// epochs or seeds agree at no more positions than by chance.
  @Example
  void ordersOfEpochsAndSeedsLookRandom() {
    List<Long> shards = List.of(300L, 0L, 213L, 487L);
    int samples = 1000;
    int epochs = 400;
    for (int block : new int[] {1, 7}) {
      long[] sums = new long[samples];
      List<List<Sample>> orders = new ArrayList<>();
      for (int i = 0; i < epochs; i++) {
        // Half of the orders differ by their epoch, the other half by their seed.
        Shuffle shuffle = new Shuffle.Blocks(i < epochs / 2 ? 5 : i, block);
        OrderOptions options = new OrderOptions(64, LastBatch.KEEP, shuffle, 1, 1, 0, 1);
        List<Sample> order = Orders.epoch(shards, options, i < epochs / 2 ? i : 5);
        orders.add(order);
        for (int at = 0; at < samples; at++) {
          sums[number(order.get(at))] += at;
        }
      }
      // The standard deviation of such a mean is 1000 / sqrt(12 * 400) = 14.4.
      assertThat(Arrays.stream(sums)).allMatch(sum -> Math.abs(sum / (double) epochs - 499.5) < 80);
      long equal = 0;
      for (int i = 1; i < epochs; i++) {
        List<Sample> one = orders.get(i - 1);
        List<Sample> other = orders.get(i);
        equal += IntStream.range(0, samples).filter(n -> one.get(n).equals(other.get(n))).count();
      }
      // A pair of random orders agrees at one position on average; the samples of a block agree
      // together.
      assertThat(equal).isBetween(200L, 700L);
    }
  }

  private static int number(Sample sample) {
    return (int) (sample.number() + (sample.shard() == 0 ? 0 : sample.shard() == 2 ? 300 : 513));
  }

  @Property
  void largeEpochsDiffer(@ForAll long seed, @ForAll @LongRange(max = 1L << 40) long epoch) {
    List<Long> shards = IntStream.range(0, 50).mapToObj(i -> 20L + i).toList();
    for (Shuffle shuffle :
        List.of(new Shuffle.Shards(seed), new Shuffle.Samples(seed), new Shuffle.Blocks(seed, 4))) {
      OrderOptions options = new OrderOptions(1000, LastBatch.DROP, shuffle, 1, 1, 0, 1);
      assertThat(EpochOrder.of(shards, options, epoch).batch(0))
          .isNotEqualTo(EpochOrder.of(shards, options, epoch + 1).batch(0));
    }
  }
}
