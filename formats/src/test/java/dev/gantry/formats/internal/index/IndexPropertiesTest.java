// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Unusable;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Usable;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.internal.order.Orders;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.lifecycle.AfterTry;
import net.jqwik.api.lifecycle.BeforeTry;

/// The indexes of any files lead to the values that the sequential reader decodes, or the files
/// are refused.
class IndexPropertiesTest {
  private Path folder = Path.of("");

  @BeforeTry
  void makeFolder() {
    folder = MemoryFolder.create();
  }

  @AfterTry
  void removeFolder() {
    MemoryFolder.delete(folder);
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @Provide
  Arbitrary<OrderOptions> orders() {
    return Orders.options();
  }

  @Property(tries = 150)
  void slotsHoldWhatTheSequentialReaderDecodes(
      @ForAll long seed,
      @ForAll boolean even,
      @ForAll("orders") OrderOptions order,
      @ForAll @IntRange(min = 2, max = 4) int slots,
      @ForAll boolean small) {
    PlanLimits limits = small ? new PlanLimits(8192, 4096, 1 << 30) : EpochBatches.LIMITS;
    try (GantrySession session = GantrySession.open()) {
      RandomDataset dataset = new RandomDataset(session, folder, seed, even);
      TransferOptions transfer = TransferOptions.defaults().withThreads(2);
      RingReplay replay = new RingReplay(session, Device.HOST, slots, transfer, () -> {});
      replay.check(dataset, order, limits);
    }
  }

  /// One or two bits are changed, which a checksum over such lengths always reveals.
  @Property(tries = 100)
  void anIndexWithChangedBitsIsRefused(
      @ForAll long seed,
      @ForAll boolean even,
      @ForAll @Size(min = 1, max = 2) Set<@IntRange(max = 1 << 24) Integer> places)
      throws IOException {
    try (GantrySession session = GantrySession.open()) {
      Path file = new RandomDataset(session, folder, seed, even).files().getFirst();
      Path index = TfRecordIndex.indexFile(file);
      byte[] bytes = Files.readAllBytes(index);
      places.stream()
          .map(place -> place % (bytes.length * Byte.SIZE))
          .distinct()
          .forEach(bit -> bytes[bit / Byte.SIZE] ^= (byte) (1 << bit % Byte.SIZE));
      Files.write(index, bytes);
      switch (catchThrowable(() -> requireUnusable(file, session))) {
        case null -> {}
        case MalformedFileException damaged ->
            assertThat(damaged.file()).isEqualTo(Location.of(index));
        case Throwable other -> throw new AssertionError("bits " + places, other);
      }
    }
  }

  private static void requireUnusable(Path file, GantrySession session) {
    switch (TfRecordIndex.open(file, session)) {
      case Unusable(String reason) -> assertThat(reason).contains("is of version");
      case Usable(TfRecordIndex opened) -> {
        opened.close();
        throw new AssertionError("the index is taken");
      }
    }
  }
}
