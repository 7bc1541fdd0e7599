package dev.gantry.formats.tfrecord.index;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.Gantry;
import dev.gantry.core.io.TransferOptions;
import dev.gantry.core.memory.LiveResources;
import dev.gantry.core.plan.PlanLimits;
import dev.gantry.formats.dataset.EpochBatches;
import dev.gantry.formats.dataset.LastBatch;
import dev.gantry.formats.dataset.OrderOptions;
import dev.gantry.formats.dataset.Shuffle;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.lifecycle.AfterTry;
import net.jqwik.api.lifecycle.BeforeTry;

/// The values of indexed files, in the slots of a ring, are those that the sequential reader
/// decodes.
class IndexedBatchesPropertiesTest {
  private Path folder = Path.of("");

  @BeforeTry
  void makeFolder() throws IOException {
    folder = Files.createTempDirectory("gantry-");
  }

  @AfterTry
  void removeFolder() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
    }
    Files.delete(folder);
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @Provide
  Arbitrary<OrderOptions> orders() {
    Arbitrary<Integer> batches = Arbitraries.integers().between(1, 24);
    Arbitrary<Integer> few = Arbitraries.integers().between(1, 3);
    Arbitrary<Shuffle> shuffles =
        Arbitraries.oneOf(
            Arbitraries.just(new Shuffle.None()),
            Arbitraries.longs().map(Shuffle.Shards::new),
            Combinators.combine(Arbitraries.longs(), few).as(Shuffle.Blocks::new));
    return Combinators.combine(batches, Arbitraries.of(LastBatch.class), shuffles, few, few)
        .as((batchSize, last, shuffle, interleave, block) ->
            new OrderOptions(
                batchSize,
                last,
                shuffle,
                shuffle instanceof Shuffle.Blocks ? 1 : interleave,
                block,
                0,
                1))
        .withoutEdgeCases();
  }

  @Property(tries = 150)
  void slotsHoldWhatTheSequentialReaderDecodes(
      @ForAll long seed,
      @ForAll boolean even,
      @ForAll("orders") OrderOptions order,
      @ForAll @IntRange(min = 2, max = 4) int slots,
      @ForAll boolean small) {
    PlanLimits limits = small ? new PlanLimits(8192, 4096, 1 << 30) : EpochBatches.LIMITS;
    try (Gantry session = Gantry.open()) {
      RandomDataset dataset = new RandomDataset(session, folder, seed, even);
      TransferOptions transfer = TransferOptions.defaults().withThreads(2);
      RingReplay replay = new RingReplay(session, Device.HOST, slots, transfer, () -> {});
      replay.check(dataset, order, limits);
    }
  }
}
