// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.copies.StagingPool;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.store.Stores;
import dev.gantry.core.internal.threads.ReaderGrowth;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The two buffers of a reader, on a device that does not report the end of its copies.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class StagedTransportStubTest {
  private static final int BLOCK = PlanLimits.BLOCK_BYTES;
  private static final int CUDA_LAUNCH_FAILED = 719;

  @TempDir Path folder;
  private final StubControls cuda = StubControls.cuda();
  private final CudaContext context = CudaContext.of(new Device.Cuda(0));
  private final StagingPool pool = new StagingPool(context, 1, Long.MAX_VALUE);
  private final StagingPool.Share buffers = pool.share();

  /// The addresses of the reader's buffers.
  private Set<Long> addresses;

  private StagedTransport.Reader reader;

  @BeforeEach
  void openReader() {
    cuda.clear();
    addresses = nextAddresses();
    reader =
        requireNonNull(
            new StagedTransport(context, buffers, 2 * BLOCK, false, null, null)
                .openReader(() -> false, ReaderGrowth.NONE));
  }

  @AfterEach
  void close() {
    cuda.clear();
  }

  /// Returns the addresses of the buffers that the next reader gets.
  private Set<Long> nextAddresses() {
    StagingPool.Pair next = requireNonNull(buffers.take(2 * BLOCK, () -> false));
    Set<Long> there = Set.of(next.first().address(), next.second().address());
    buffers.giveBack(next);
    return there;
  }

  @Test
  void aBufferThatCouldNotBeAwaitedIsNotFilled() {
    Path file = TestFiles.write(folder.resolve("file"), 1, 2 * BLOCK);
    Location location = Location.of(file);
    DeviceSlab slab = DeviceSlab.allocate(context, 2 * BLOCK);
    Target target = Target.of(slab);
    Read whole = new Read(location, 0, 2 * BLOCK, 2 * BLOCK, 0, 0);
    Read small = new Read(location, 0, BLOCK, BLOCK, 0, 0);
    try (SourceFile source = new Stores(Libc.INSTANCE).open(location, CachePolicy.BUFFERED)) {
      reader.read(source, whole, target, false, null);
      reader.read(source, whole, target, false, null);
      cuda.fail("cuEventSynchronize", 0, CUDA_LAUNCH_FAILED, 0);
      for (int i = 0; i < 3; i++) {
        assertThatThrownBy(() -> reader.read(source, small, target, false, null))
            .isInstanceOf(TransferException.class);
      }
    }
    assertThat(cuda.calls("cuMemcpyHtoDAsync")).isEqualTo(2);
    cuda.clear();
    reader.close();
    slab.release();
    assertThat(nextAddresses()).isEqualTo(addresses);
  }

  /// Queues a copy from each of the two buffers.
  private void copyFromBoth(DeviceSlab slab) {
    Path file = TestFiles.write(folder.resolve("file"), 1, 2 * BLOCK);
    Location location = Location.of(file);
    Read whole = new Read(location, 0, 2 * BLOCK, 2 * BLOCK, 0, 0);
    try (SourceFile source = new Stores(Libc.INSTANCE).open(location, CachePolicy.BUFFERED)) {
      reader.read(source, whole, Target.of(slab), false, null);
      reader.read(source, whole, Target.of(slab), false, null);
    }
  }

  @Test
  void nothingIsAwaitedWhereNothingWasCopied() {
    reader.close();
    assertThat(cuda.calls("cuEventRecord")).isZero();
    assertThat(cuda.calls("cuEventSynchronize")).isZero();
    assertThat(nextAddresses()).isEqualTo(addresses);
  }

  @Test
  void buffersAreGivenBackWhereTheWholeDeviceWasAwaited() {
    DeviceSlab slab = DeviceSlab.allocate(context, 2 * BLOCK);
    copyFromBoth(slab);
    cuda.fail("cuEventSynchronize", 1, CUDA_LAUNCH_FAILED, 0);
    assertThatThrownBy(reader::close).hasMessageContaining("cuEventSynchronize");
    cuda.clear();
    slab.release();
    assertThat(nextAddresses()).isEqualTo(addresses);
  }

  @Test
  void buffersWhoseCopiesCannotBeAwaitedAreLeftToTheDevice() {
    DeviceSlab slab = DeviceSlab.allocate(context, 2 * BLOCK);
    copyFromBoth(slab);
    cuda.fail("cuEventSynchronize", 0, CUDA_LAUNCH_FAILED, 0);
    cuda.fail("cuCtxSynchronize", 0, CUDA_LAUNCH_FAILED, 0);
    assertThatThrownBy(reader::close).hasMessageContaining("cuEventSynchronize");
    cuda.clear();
    slab.release();
    assertThat(nextAddresses()).doesNotContainAnyElementsOf(addresses);
    StagingPool.Pair pair = reader.pair;
    assertThat(pair.first().isClosed()).isFalse();
    pair.first().release();
    pair.second().release();
  }
}
