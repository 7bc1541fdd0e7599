// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.spi.SampleRun;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;

/// Shards and orders of all kinds that are small enough to be listed.
public final class Orders {
  private Orders() {}

  /// A sample by its shard and its number in the shard.
  public record Sample(int shard, long number) {}

  /// Returns numbers of samples of shards; some shards are empty.
  public static Arbitrary<List<Long>> shards() {
    return Arbitraries.longs().between(0, 40).list().ofMaxSize(7).withoutEdgeCases();
  }

  /// Returns shuffles that keep the samples of a shard in their order.
  public static Arbitrary<Shuffle> ofWholeShards() {
    return Arbitraries.oneOf(
        Arbitraries.just(new Shuffle.None()), Arbitraries.longs().map(Shuffle.Shards::new));
  }

  static Arbitrary<Shuffle> shuffles() {
    return Arbitraries.oneOf(
        ofWholeShards(),
        Arbitraries.longs().map(Shuffle.Samples::new),
        Combinators.combine(Arbitraries.longs(), Arbitraries.integers().between(1, 12))
            .as(Shuffle.Blocks::new));
  }

  public static Arbitrary<OrderOptions> options() {
    return options(shuffles());
  }

  /// Returns options of the first of 1 to 5 ranks.
  public static Arbitrary<OrderOptions> options(Arbitrary<Shuffle> shuffles) {
    Arbitrary<Integer> few = Arbitraries.integers().between(1, 5);
    return Combinators.combine(
            Arbitraries.integers().between(1, 20),
            Arbitraries.of(LastBatch.class),
            shuffles,
            few,
            few,
            few)
        .as((batchSize, last, shuffle, interleave, block, world) ->
            new OrderOptions(batchSize, last, shuffle, interleave, block, 0, world))
        .withoutEdgeCases();
  }

  public static OrderOptions ranked(OrderOptions options, int rank, int world) {
    return new OrderOptions(
        options.batchSize(),
        options.lastBatch(),
        options.shuffle(),
        options.interleave(),
        options.interleaveBlock(),
        rank,
        world);
  }

  static OrderOptions with(OrderOptions options, LastBatch last) {
    return new OrderOptions(
        options.batchSize(),
        last,
        options.shuffle(),
        options.interleave(),
        options.interleaveBlock(),
        options.rank(),
        options.world());
  }

  public static List<Sample> samples(List<SampleRun> runs) {
    List<Sample> samples = new ArrayList<>();
    for (SampleRun run : runs) {
      for (int i = 0; i < run.count(); i++) {
        samples.add(new Sample(run.file(), run.first() + i));
      }
    }
    return samples;
  }

  public static List<Sample> samples(EpochOrder order) {
    List<Sample> samples = new ArrayList<>();
    for (long batch = 0; batch < order.batches(); batch++) {
      samples.addAll(samples(order.batch(batch)));
    }
    return samples;
  }

  /// Returns all samples in the order of the files.
  static List<Sample> all(List<Long> shards) {
    List<Sample> samples = new ArrayList<>();
    for (int shard = 0; shard < shards.size(); shard++) {
      for (long number = 0; number < shards.get(shard); number++) {
        samples.add(new Sample(shard, number));
      }
    }
    return samples;
  }

  /// Returns the whole epoch as a single worker gets it.
  static List<Sample> epoch(List<Long> shards, OrderOptions options, long epoch) {
    return samples(EpochOrder.of(shards, with(ranked(options, 0, 1), LastBatch.KEEP), epoch));
  }
}
