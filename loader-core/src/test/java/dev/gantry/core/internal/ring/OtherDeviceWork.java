// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.Snapshot;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.commit.SnapshotMemory;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.plan.StridedRange;
import dev.gantry.core.internal.resident.ResidentServer;
import dev.gantry.core.internal.resident.ResidentSource;
import dev.gantry.core.internal.resident.ResidentWeights;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.HostFill;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.session.ReadInto;
import dev.gantry.core.internal.session.Sliced;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The operations with a GPU that [DeviceWork] does not have: batches by a transport that was asked for, a load of a
/// remote file, a read into memory, slices for two GPUs, filled memory, snapshots and resident weights. All bytes are
/// compared.
final class OtherDeviceWork {
  private static final Device SECOND = new Device.Cuda(1);
  private static final int BLOCK = Recipes.BLOCK;
  private static final int COUNT = 6;
  private static final int BYTES = COUNT * BLOCK;

  private final Path folder;
  private final Location file;
  private final byte[] bytes = TestFiles.bytes(8, BYTES);
  private final Location remote = MemoryStore.put("other/work", bytes);

  OtherDeviceWork(Path folder) {
    this.folder = folder;
    file = Location.of(TestFiles.write(folder.resolve("other"), 8, BYTES));
  }

  private static TransferOptions options(CachePolicy policy, @Nullable Transport transport) {
    return TransferOptions.defaults()
        .withThreads(1)
        .withCachePolicy(policy)
        .withTransport(transport)
        .withLimits(PlanLimits.DEFAULT.withRequestBytes(2 * BLOCK));
  }

  private void check(Region region, int from) {
    assertThat(TestFiles.bytes(region))
        .isEqualTo(Arrays.copyOfRange(bytes, from, from + (int) region.length()));
  }

  void readBatches(GantrySession gantry, Transport asked) {
    Batches<Integer> batches =
        new Batches<>(
            COUNT,
            number ->
                new BatchPlan<>(
                    List.of(new Read(file, (long) number * BLOCK, BLOCK, BLOCK, 0, 0)),
                    HostWrites.NONE,
                    List.of(),
                    number));
    CachePolicy policy = asked == Transport.MAPPED ? CachePolicy.BY_RESIDENCY : CachePolicy.DIRECT;
    RingOptions options =
        new RingOptions(DeviceWork.DEVICE, 2, BLOCK, BLOCK, options(policy, asked), true);
    try (PrefetchRing<Integer> ring = gantry.ring(options, batches)) {
      for (Optional<RingBatch<Integer>> next = ring.next(); next.isPresent(); next = ring.next()) {
        try (RingBatch<Integer> batch = next.get()) {
          check(batch.region(0, BLOCK), batch.label() * BLOCK);
        }
      }
    }
  }

  void loadRemote(GantrySession gantry) {
    List<ExtentRequest> wanted = List.of(new ExtentRequest(new Extent(remote, 0, BYTES), 256));
    TransferOptions options = options(CachePolicy.BUFFERED, null);
    try (Loaded loaded = gantry.load(wanted, DeviceWork.DEVICE, options)) {
      check(loaded.regions().getFirst(), 0);
    }
  }

  void readIntoMemory(GantrySession gantry) {
    DeviceSlab slab = DeviceSlab.allocate(CudaContext.of(DeviceWork.DEVICE), BYTES);
    try {
      Region region = new Region(slab, 0, BYTES);
      Memory memory = new Memory.OnDevice(DeviceWork.DEVICE, slab.address(), BYTES);
      var _ =
          gantry.read(
              List.of(new ReadInto("all", new Extent(file, 0, BYTES), memory)),
              options(CachePolicy.DIRECT, null));
      check(region, 0);
    } finally {
      slab.release();
    }
  }

  /// Each GPU gets every second row.
  void loadSlices(GantrySession gantry) {
    int row = BLOCK / 2;
    List<List<Sliced>> parts =
        IntStream.range(0, 2)
            .mapToObj(rank -> new Copy2D((long) rank * row, BLOCK, 0, row, row, COUNT))
            .map(rows -> List.of(new Sliced(List.of(new StridedRange(file, rows)), COUNT * row)))
            .toList();
    List<Loaded> loaded =
        gantry.loadSlices(
            List.of(DeviceWork.DEVICE, SECOND), parts, options(CachePolicy.BUFFERED, null));
    try {
      for (int rank = 0; rank < 2; rank++) {
        byte[] there = TestFiles.bytes(loaded.get(rank).regions().getFirst());
        for (int i = 0; i < COUNT; i++) {
          int from = i * BLOCK + rank * row;
          assertThat(Arrays.copyOfRange(there, i * row, (i + 1) * row))
              .isEqualTo(Arrays.copyOfRange(bytes, from, from + row));
        }
      }
    } finally {
      for (Loaded one : loaded) {
        one.close();
      }
    }
  }

  private Loaded filled(GantrySession gantry) {
    return gantry.fill(
        List.of(new HostFill(BYTES, target -> target.copyFrom(MemorySegment.ofArray(bytes)))),
        DeviceWork.DEVICE,
        options(CachePolicy.BUFFERED, null));
  }

  /// Fills memory of a GPU, and saves a snapshot of it.
  ///
  /// @param deviceBytes how many bytes of the GPU snapshots may take
  void saveSnapshot(GantrySession gantry, long deviceBytes) throws IOException {
    Path saved = folder.resolve("snapshot");
    try (Loaded loaded = filled(gantry);
        SnapshotMemory memory = new SnapshotMemory(new SnapshotLimits(deviceBytes, 1 << 30))) {
      Region region = loaded.regions().getFirst();
      check(region, 0);
      Memory part = new Memory.OnDevice(DeviceWork.DEVICE, region.address(), region.length());
      List<NewFile> files = List.of(new NewFile(saved, List.of(part)));
      boolean _ = memory.prepare(files);
      try (Snapshot snapshot = memory.reserve(files).orElseThrow().fill()) {
        var _ = gantry.write(snapshot.files(), WriteOptions.defaults().withThreads(1));
        assertThat(Files.readAllBytes(saved)).isEqualTo(bytes);
      }
    } finally {
      Files.deleteIfExists(saved);
    }
  }

  /// A server of this process keeps a file on a GPU, and a client maps it.
  void mapResidentWeights(GantrySession gantry) throws InterruptedException {
    Thread serving = null;
    ResidentServer server = ResidentServer.listen(folder.resolve("private/s.sock"), _ -> {});
    try {
      server.publish(
          gantry.keepResident(
              1,
              "other",
              List.of(new ResidentSource(file, BYTES, BLOCK, BYTES)),
              DeviceWork.DEVICE,
              TransferOptions.defaults()));
      serving = Thread.ofPlatform().daemon().start(server::run);
      try (ResidentWeights held = ResidentWeights.hold(server.location());
          Loaded loaded =
              gantry.load(
                  List.of(new ExtentRequest(new Extent(held.entry(), BLOCK, BYTES - BLOCK), 256)),
                  DeviceWork.DEVICE,
                  TransferOptions.defaults())) {
        check(loaded.regions().getFirst(), BLOCK);
      }
    } finally {
      server.close();
      if (serving != null) {
        serving.join();
      }
    }
  }
}
