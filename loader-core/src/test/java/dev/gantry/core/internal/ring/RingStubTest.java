// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Rings on a device whose driver refuses calls, and the resources that they must not leave there.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class RingStubTest {
  private static final int BLOCK = Recipes.BLOCK;
  private static final int COUNT = 50;
  private static final int CUDA_OUT_OF_MEMORY = 2;
  private static final int CUDA_LAUNCH_FAILED = 719;
  private static final List<String> FIGURES =
      List.of(
          "streams",
          "events",
          "device bytes",
          "pinned bytes",
          "registered bytes",
          "pending operations",
          "freed while pending",
          "freed while registered",
          "pageable copies");

  @TempDir Path folder;
  private final StubControls cuda = StubControls.cuda();
  private final GantrySession gantry = GantrySession.open();
  private List<Long> before;
  private Path file;

  @BeforeEach
  void begin() {
    cuda.clear();
    before = FIGURES.stream().map(cuda::count).toList();
    file = TestFiles.write(folder.resolve("blocks"), 7, COUNT * BLOCK);
  }

  @AfterEach
  void nothingIsLeftOnTheDevice() {
    cuda.clear();
    gantry.close();
    assertThat(FIGURES.stream().map(cuda::count).toList()).as("%s", FIGURES).isEqualTo(before);
  }

  private static RingOptions options() {
    return options(2);
  }

  private static RingOptions options(int readers) {
    TransferOptions transfer =
        TransferOptions.defaults()
            .withThreads(readers)
            .withTransport(Transport.STAGED)
            .withCachePolicy(CachePolicy.BUFFERED)
            .withLimits(PlanLimits.DEFAULT.withRequestBytes(2 * BLOCK));
    return new RingOptions(new Device.Cuda(0), 3, 4 * BLOCK, BLOCK, transfer, true);
  }

  private Read read(int block, int slotOffset) {
    return new Read(Location.of(file), (long) block * BLOCK, BLOCK, BLOCK, 0, slotOffset);
  }

  /// Returns the number of a second block for a batch. A lone reader brings both blocks through
  /// the same staging buffer.
  private static int other(int number) {
    return (number + 7) % COUNT;
  }

  /// Plans with reads, host writes and copies.
  private Batches<Integer> batches() {
    return new Batches<>(
        COUNT,
        number ->
            new BatchPlan<>(
                List.of(read(number, 0), read(other(number), 3 * BLOCK)),
                new HostWrites(BLOCK, 8, List.of(target -> target.fill((byte) number))),
                List.of(new Copy2D(0, 100, 2 * BLOCK, 60, 50, 10)),
                number));
  }

  private static void takeAll(PrefetchRing<Integer> ring) {
    for (int i = 0; i < COUNT; i++) {
      RingContract.take(ring).close();
    }
    assertThat(ring.next()).isEmpty();
  }

  private static void checkAll(PrefetchRing<Integer> ring, byte[] bytes) {
    for (Optional<RingBatch<Integer>> next = ring.next(); next.isPresent(); next = ring.next()) {
      try (RingBatch<Integer> batch = next.get()) {
        check(batch, bytes);
      }
    }
  }

  private static void check(RingBatch<Integer> batch, byte[] bytes) {
    int number = batch.label();
    byte[] own = block(bytes, number);
    assertThat(content(batch, 0, BLOCK)).as("batch %d", number).isEqualTo(own);
    assertThat(content(batch, 3 * BLOCK, BLOCK)).isEqualTo(block(bytes, other(number)));
    assertThat(content(batch, BLOCK, 8)).containsOnly(number);
    for (int row = 0; row < 10; row++) {
      assertThat(content(batch, 2 * BLOCK + 60 * row, 50))
          .isEqualTo(Arrays.copyOfRange(own, 100 * row, 100 * row + 50));
    }
  }

  private static byte[] block(byte[] bytes, int number) {
    return Arrays.copyOfRange(bytes, number * BLOCK, (number + 1) * BLOCK);
  }

  private static byte[] content(RingBatch<Integer> batch, int offset, int length) {
    return TestFiles.bytes(batch.region(offset, length));
  }

  @Test
  void aRingLeavesNothing() {
    try (PrefetchRing<Integer> ring = gantry.ring(options(), batches())) {
      takeAll(ring);
      assertThat(cuda.calls("cuCtxSynchronize")).as("never waits for all").isZero();
      assertThat(cuda.calls("cuStreamSynchronize")).as("no stream is drained").isZero();
    }
    assertThat(cuda.calls("cuMemcpy2DAsync")).isEqualTo(COUNT);
  }

  @Test
  void theNextRingTakesWhatTheOneBeforeHad() {
    byte[] bytes = TestFiles.bytes(7, COUNT * BLOCK);
    for (int epoch = 1; epoch <= 3; epoch++) {
      // A second reader would take buffers and events at its first read, which may be in any epoch
      // or in none.
      try (PrefetchRing<Integer> ring = gantry.ring(options(1), batches())) {
        checkAll(ring, bytes);
      }
      if (epoch > 1) {
        for (String function :
            List.of(
                "cuMemAlloc",
                "cuMemFree",
                "cuMemHostRegister",
                "cuMemHostUnregister",
                "cuStreamCreate",
                "cuStreamDestroy",
                "cuCtxSynchronize")) {
          assertThat(cuda.calls(function)).as("%s in epoch %d", function, epoch).isZero();
        }
      }
      if (epoch > 2) {
        // Some events of the first ring stay with the memory of its slots, so only the third ring
        // finds all that it needs.
        assertThat(cuda.calls("cuEventCreate")).as("cuEventCreate in epoch %d", epoch).isZero();
      }
      cuda.clear();
    }
  }

  @Test
  void aRingThatIsClosedWithBatchesUnderWayLeavesNothing() {
    RingBatch<Integer> batch;
    try (PrefetchRing<Integer> ring = gantry.ring(options(), batches())) {
      RingContract.take(ring).close();
      batch = RingContract.take(ring);
    }
    assertThat(TestFiles.bytes(batch.region(BLOCK, 8))).containsOnly(1);
    batch.close();
  }

  @ParameterizedTest
  @ValueSource(strings = {"cuMemAlloc", "cuMemHostRegister", "cuStreamCreate", "cuEventCreate"})
  void whatTheDeviceRefusesAtTheStartLeavesNothing(String function) {
    for (int nth = 1; nth <= 3; nth++) {
      cuda.fail(function, nth, CUDA_OUT_OF_MEMORY, 0);
      Batches<Integer> source = batches();
      assertThatThrownBy(() -> gantry.ring(options(), source))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("CUDA_ERROR_OUT_OF_MEMORY");
      assertThat(source.closed()).isEqualTo(1);
      gantry.freeIdle();
      assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
    }
  }

  /// A device call that fails while batches are read ends the ring with one failure: the batches
  /// before it are complete, and no resource is left.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "cuMemcpyHtoDAsync",
        "cuMemcpy2DAsync",
        "cuStreamWaitEvent",
        "cuEventRecord",
        "cuEventSynchronize",
        "cuEventQuery",
        "cuMemsetD8Async"
      })
  void whatTheDeviceRefusesInMidWayEndsTheRing(String function) {
    byte[] bytes = TestFiles.bytes(7, COUNT * BLOCK);
    for (int nth : new int[] {1, 2, 5, 11}) {
      try (PrefetchRing<Integer> ring = gantry.ring(options(), batches())) {
        RingContract.take(ring).close();
        cuda.fail(function, nth, CUDA_LAUNCH_FAILED, 0);
        Throwable failure = catchThrowable(() -> checkAll(ring, bytes));
        assertThat(failure)
            .as("%s %d", function, nth)
            .isInstanceOf(TransferException.class)
            .hasMessageContaining(function);
        assertThat(catchThrowable(ring::next)).isSameAs(failure);
      }
      cuda.clear();
    }
  }

  @Test
  void memoryThatCannotBeReplacedFailsTheNextBatchInThatSlot() {
    try (PrefetchRing<Integer> ring = gantry.ring(options(), batches())) {
      RingBatch<Integer> batch = RingContract.take(ring);
      Region view = batch.region(BLOCK, 8);
      Runnable share = view.retain();
      cuda.fail("cuMemAlloc", 0, CUDA_OUT_OF_MEMORY, 0);
      batch.close();
      RingContract.take(ring).close();
      RingContract.take(ring).close();
      assertThatThrownBy(() -> takeAll(ring))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("cuMemAlloc");
      assertThat(TestFiles.bytes(view)).containsOnly(0);
      share.run();
    }
  }

  @Test
  void noMemoryIsTakenForABatchThatThereIsNot() {
    Batches<Integer> source = new Batches<>(3, RingContract::number);
    try (PrefetchRing<Integer> ring = gantry.ring(options(), source)) {
      RingBatch<Integer> batch = RingContract.take(ring);
      Region view = batch.region(0, 8);
      Runnable share = view.retain();
      cuda.fail("cuMemAlloc", 0, CUDA_OUT_OF_MEMORY, 0);
      batch.close();
      RingContract.take(ring).close();
      RingContract.take(ring).close();
      assertThat(ring.next()).isEmpty();
      share.run();
    }
  }
}
