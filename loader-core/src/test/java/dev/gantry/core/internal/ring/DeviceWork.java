// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/// The work of a GPU that is repeated for each fault: a load, a save of the loaded bytes, and the
/// batches of a ring. All bytes are compared.
final class DeviceWork {
  static final Device.Cuda DEVICE = new Device.Cuda(0);

  /// The names under which the stub of libcuda counts the resources in use.
  static final List<String> FIGURES =
      List.of("streams", "events", "device bytes", "pinned bytes", "registered bytes", "modules");

  private static final int BLOCK = Recipes.BLOCK;
  private static final int COUNT = 12;

  private final Path folder;
  private final Path file;
  private final byte[] bytes = TestFiles.bytes(7, COUNT * BLOCK);
  private final List<ExtentRequest> wanted;

  DeviceWork(Path folder) {
    this.folder = folder;
    file = TestFiles.write(folder.resolve("blocks"), 7, COUNT * BLOCK);
    wanted = List.of(new ExtentRequest(new Extent(file, 0, (long) COUNT * BLOCK), 256));
  }

  private static TransferOptions options(CachePolicy policy) {
    return TransferOptions.defaults()
        .withThreads(1)
        .withCachePolicy(policy)
        .withLimits(PlanLimits.DEFAULT.withRequestBytes(4 * BLOCK));
  }

  void loadAndSave(GantrySession gantry, CachePolicy policy) throws IOException {
    try (Loaded loaded = gantry.load(wanted, DEVICE, options(policy))) {
      assertThat(TestFiles.firstDifference(loaded, wanted)).isEmpty();
      save(gantry, loaded.regions().getFirst());
    }
  }

  void load(GantrySession gantry, CachePolicy policy) {
    gantry.load(wanted, DEVICE, options(policy)).close();
  }

  private void save(GantrySession gantry, Region region) throws IOException {
    Path saved = folder.resolve("saved");
    Memory memory = new Memory.OnDevice(DEVICE, region.address(), region.length());
    boolean done = false;
    try {
      var _ =
          gantry.write(
              List.of(new NewFile(saved, List.of(memory))),
              WriteOptions.defaults().withThreads(1).withRequestBytes(4 * BLOCK));
      done = true;
    } finally {
      if (done || Files.exists(saved)) {
        assertThat(Files.readAllBytes(saved)).as("whole or absent").isEqualTo(bytes);
        Files.delete(saved);
      }
    }
  }

  void readBatches(GantrySession gantry, CachePolicy policy) {
    Batches<Integer> batches =
        new Batches<>(
            COUNT,
            number ->
                new BatchPlan<>(
                    List.of(new Read(Location.of(file), (long) number * BLOCK, BLOCK, BLOCK, 0, 0)),
                    new HostWrites(BLOCK, 8, List.of(target -> target.fill((byte) number))),
                    List.of(new Copy2D(0, 100, 2 * BLOCK, 60, 50, 10)),
                    number));
    RingOptions options = new RingOptions(DEVICE, 2, 3 * BLOCK, BLOCK, options(policy), true);
    try (PrefetchRing<Integer> ring = gantry.ring(options, batches)) {
      for (Optional<RingBatch<Integer>> next = ring.next(); next.isPresent(); next = ring.next()) {
        try (RingBatch<Integer> batch = next.get()) {
          int from = batch.label() * BLOCK;
          assertThat(TestFiles.bytes(batch.region(0, BLOCK)))
              .isEqualTo(Arrays.copyOfRange(bytes, from, from + BLOCK));
          assertThat(TestFiles.bytes(batch.region(2 * BLOCK + 60, 50)))
              .isEqualTo(Arrays.copyOfRange(bytes, from + 100, from + 150));
        }
      }
    }
  }
}
