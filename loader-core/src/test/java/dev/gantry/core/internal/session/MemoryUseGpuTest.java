// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.abort;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.Gathers;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// A load to a GPU uses the predicted amount of memory, by the counters of memory in use.
@Tag("gpu")
@ExtendWith(NoLeaks.class)
class MemoryUseGpuTest {
  private static final int BLOCK = PlanLimits.BLOCK_BYTES;
  private static final Device.Cuda DEVICE = new Device.Cuda(0);
  private static final int FILE_BYTES = 9_000_001;

  @TempDir private Path folder;
  private Path file;

  @BeforeEach
  void begin() {
    file = TestFiles.write(folder.resolve("file"), 3, FILE_BYTES);
    LiveResources.forgetMostUsed();
    assertThat(LiveResources.mostUsed()).as("in use before").isEqualTo(MemoryUse.NOTHING);
  }

  /// Opens a session whose readers work at the same time: no read starts before `readers` threads
  /// have one to make.
  private static GantrySession together(int readers) {
    Set<Thread> seen = ConcurrentHashMap.newKeySet();
    CountDownLatch all = new CountDownLatch(readers);
    return GantrySession.open(
        new ForwardingFileCalls(Libc.INSTANCE) {
          @Override
          public long pread(int fd, MemorySegment target, long length, long offset) {
            if (seen.add(Thread.currentThread())) {
              all.countDown();
            }
            try {
              assertThat(all.await(60, TimeUnit.SECONDS)).isTrue();
            } catch (InterruptedException e) {
              throw new IllegalStateException(e);
            }
            return super.pread(fd, target, length, offset);
          }
        });
  }

  private static TransferOptions options(int threads, long requestBytes) {
    return TransferOptions.defaults()
        .withThreads(threads)
        .withTransport(Transport.STAGED)
        .withLimits(new PlanLimits(requestBytes, 0, 2 << 20));
  }

  /// Returns large and small extents; some of them must be moved for their alignment.
  private List<ExtentRequest> wanted() {
    List<ExtentRequest> wanted = new ArrayList<>();
    for (int length : new int[] {1, 5_000_000, 4096, 77, 2_000_000, 1_500_000}) {
      long offset = wanted.isEmpty() ? 0 : wanted.getLast().extent().end();
      wanted.add(new ExtentRequest(new Extent(file, offset, length), 8));
    }
    return wanted;
  }

  @ParameterizedTest
  @CsvSource({"1, 4096, 0", "1, 1048576, 3000000", "3, 1048576, 0", "4, 262144, 5000000"})
  void aLoad(int threads, long requestBytes, long slabCapacity) {
    TransferOptions options = options(threads, requestBytes).withSlabCapacity(slabCapacity);
    try (GantrySession session = together(threads)) {
      Loaded loaded = session.load(wanted(), DEVICE, options);
      MemoryUse used = LiveResources.mostUsed();
      assertThat(used).isEqualTo(new MemoryUse(used.deviceBytes(), 2 * threads * requestBytes, 0));
      assertThat(used.deviceBytes()).isGreaterThan(FILE_BYTES / 10 * 9);
      LiveResources.forgetMostUsed();
      MemoryUse stays = LiveResources.mostUsed();
      assertThat(stays).isEqualTo(new MemoryUse(stays.deviceBytes(), 0, 0));
      assertThat(stays.deviceBytes()).isBetween(FILE_BYTES / 10L * 9, used.deviceBytes());
      loaded.close();
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = Transport.class,
      names = {"STAGED", "COMPAT"})
  void aLoadOfOneReader(Transport transport) {
    TransferOptions options = options(1, 1 << 20).withTransport(transport);
    try (GantrySession session = GantrySession.open()) {
      session.load(wanted(), DEVICE, options).close();
      long pinned = transport == Transport.STAGED ? 2 << 20 : 0;
      MemoryUse used = LiveResources.mostUsed();
      assertThat(used).isEqualTo(new MemoryUse(used.deviceBytes(), pinned, 0));
    } catch (DeviceUnavailableException e) {
      // libcufile refuses files whose disk udev does not know.
      abort(e.getMessage());
    }
  }

  @Test
  void whatTheCpuMakes() {
    List<Long> bytes = List.of(1_000_000L, 0L, 1_500_000L, 63L, 600_000L);
    TransferOptions options = options(1, 1 << 20);
    try (GantrySession session = GantrySession.open()) {
      List<HostFill> fills = bytes.stream().map(size -> new HostFill(size, _ -> {})).toList();
      session.fill(fills, DEVICE, options).close();
      // Slabs have up to 2 MiB, and one slab at a time is being copied.
      MemoryUse used = LiveResources.mostUsed();
      long all = bytes.stream().mapToLong(Long::longValue).sum();
      assertThat(used.deviceBytes()).isBetween(all, all + bytes.size() * 64);
      assertThat(used.hostBytes()).isBetween(1_500_000L, 2L << 20);
      assertThat(used.pinnedBytes()).isZero();
    }
  }

  @Test
  void intoMemoryThatIsThere() {
    DeviceSlab slab = DeviceSlab.allocate(CudaContext.of(DEVICE), FILE_BYTES);
    TransferOptions options = options(2, 1 << 20);
    List<ReadInto> parts =
        List.of(
            new ReadInto(
                "all",
                new Extent(file, 0, FILE_BYTES),
                new Memory.OnDevice(DEVICE, slab.address(), FILE_BYTES)));
    try (GantrySession session = together(2)) {
      var _ = session.read(parts, options);
      assertThat(LiveResources.mostUsed()).isEqualTo(new MemoryUse(FILE_BYTES, 4 << 20, 0));
    } finally {
      slab.release();
    }
  }

  /// Batches of rows at any offset, brought by reads or by a kernel.
  private final class Rows implements BatchPlanSource<Integer> {
    private static final int ROWS = 3000;
    private int next;

    @Override
    public Optional<BatchPlan<Integer>> next() {
      if (next == 20) {
        return Optional.empty();
      }
      int batch = next++;
      List<Read> reads = new ArrayList<>();
      Gathers.Builder gathers = new Gathers.Builder(ROWS);
      for (int i = 0; i < 8; i++) {
        long offset = (long) (batch * 8 + i) * 8 * BLOCK;
        reads.add(
            new Read(Location.of(file), offset, 8 * BLOCK, 8 * BLOCK, 0, (long) i * 8 * BLOCK));
      }
      for (int i = 0; i < ROWS; i++) {
        gathers.add(Location.of(file), batch * 100L + i, 50, i * 50L);
      }
      return Optional.of(
          new BatchPlan<>(
              reads,
              new HostWrites(64L * BLOCK, 8, List.of(target -> target.fill((byte) 1))),
              List.of(),
              gathers.build(),
              List.of(),
              batch,
              null));
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = Transport.class,
      names = {"STAGED", "MAPPED"})
  void aRing(Transport transport) {
    TransferOptions transfer = options(2, 16 * BLOCK).withTransport(transport);
    RingOptions options = new RingOptions(DEVICE, 3, 65 * BLOCK, BLOCK, transfer, false);
    try (GantrySession session =
        transport == Transport.STAGED ? together(2) : GantrySession.open()) {
      long others =
          transport == Transport.STAGED
              ? 2 * 2 * (16 * BLOCK + (64 << 10))
              : 3L * 2 * Rows.ROWS * 24;
      try (PrefetchRing<Integer> ring = session.ring(options, new Rows())) {
        for (Optional<RingBatch<Integer>> batch = ring.next();
            batch.isPresent();
            batch = ring.next()) {
          batch.get().close();
        }
      }
      assertThat(LiveResources.mostUsed())
          .isEqualTo(new MemoryUse(3L * 65 * BLOCK, 3L * BLOCK + others, 0));
    }
  }

  @Test
  void whatDoesNotFitTheDeviceIsRefusedBeforeAnythingIsTaken() throws IOException {
    long huge = 1L << 43;
    try (RandomAccessFile out = new RandomAccessFile(file.toFile(), "rw")) {
      out.setLength(huge);
    }
    TransferOptions options = options(1, 64 << 20).withCachePolicy(CachePolicy.BUFFERED);
    List<ExtentRequest> all = List.of(new ExtentRequest(new Extent(file, 0, huge), 1));
    try (GantrySession session = GantrySession.open()) {
      assertThatThrownBy(() -> session.load(all, DEVICE, options))
          .isInstanceOf(TransferException.class)
          .hasMessageContainingAll(
              huge + " bytes of memory of cuda:0", "only ", " bytes are free", "fewer tensors");
      RingOptions ring = new RingOptions(DEVICE, 2, huge, 0, options, false);
      assertThatThrownBy(() -> session.ring(ring, new Rows()))
          .isInstanceOf(TransferException.class)
          .hasMessageContainingAll(2 * huge + " bytes of memory of cuda:0", "optPrefetch");
    }
    assertThat(LiveResources.mostUsed()).isEqualTo(MemoryUse.NOTHING);
  }
}
