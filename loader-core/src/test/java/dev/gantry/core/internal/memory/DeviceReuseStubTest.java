// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.session.OffloadBuffer;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/// Slabs that reuse the memory of freed slabs, on a device whose streams run late.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class DeviceReuseStubTest {
  private static final int BYTES = 1 << 20;
  private static final int CUDA_OUT_OF_MEMORY = 2;
  private static final int CUDA_LAUNCH_FAILED = 719;
  private static final byte[] OLD = TestFiles.bytes(1, BYTES);
  private static final byte[] NEW = TestFiles.bytes(2, BYTES);

  private final StubControls cuda = StubControls.cuda();
  private final CudaContext context = CudaContext.of(new Device.Cuda(0));
  private final CudaDriver driver = context.driver();
  private final List<Slab> slabs = new ArrayList<>();

  @BeforeEach
  void begin() {
    CudaContext.freeIdle();
    cuda.clear();
  }

  @AfterEach
  void nothingIsLeftOnTheDevice() {
    cuda.clear();
    Slab.releaseAll(slabs);
    CudaContext.freeIdle();
    assertThat(cuda.count("device bytes")).isZero();
    assertThat(cuda.count("pinned bytes")).isZero();
    assertThat(cuda.count("registered bytes")).isZero();
    assertThat(cuda.count("streams")).isZero();
    assertThat(cuda.count("events")).isZero();
    assertThat(cuda.count("freed while pending")).isZero();
  }

  private DeviceSlab allocate() {
    return keep(DeviceSlab.allocate(context, BYTES));
  }

  private <T extends Slab> T keep(T slab) {
    slabs.add(slab);
    return slab;
  }

  private PinnedSlab pinned(byte[] bytes) {
    PinnedSlab slab = keep(PinnedSlab.allocate(context, bytes.length));
    slab.segment().copyFrom(MemorySegment.ofArray(bytes));
    return slab;
  }

  private static byte[] content(DeviceSlab slab) {
    return TestFiles.bytes(new Region(slab, 0, BYTES));
  }

  /// Queues a read of a slab on the default stream, and releases the slab.
  ///
  /// @return the slab that the read fills
  private DeviceSlab releaseWhileItIsRead() {
    PinnedSlab old = pinned(OLD);
    DeviceSlab target = allocate();
    DeviceSlab source = DeviceSlab.allocate(context, BYTES);
    try (var _ = context.enter()) {
      CudaDriver.Stream stream = CudaDriver.Stream.DEFAULT;
      driver.copyToDevice(source.address(), old.address(), BYTES, stream);
      driver.copyOnDevice(target.address(), source.address(), BYTES, stream);
    }
    source.release();
    return target;
  }

  /// Fills a new slab on a stream that is not ordered with the default stream.
  private void fillNext(CudaDriver.Stream stream, Supplier<DeviceSlab> next) {
    PinnedSlab bytes = pinned(NEW);
    long allocations = cuda.calls("cuMemAlloc");
    DeviceSlab slab = keep(next.get());
    assertThat(cuda.calls("cuMemAlloc")).isEqualTo(allocations);
    try (var _ = context.enter()) {
      driver.copyToDevice(slab.address(), bytes.address(), BYTES, stream);
      driver.synchronize(stream);
    }
    context.streams().giveBack(stream);
    assertThat(content(slab)).isEqualTo(NEW);
  }

  @Test
  void aSlabIsFreeWhenItsReadersBeforeHaveRun() {
    DeviceSlab read = releaseWhileItIsRead();
    fillNext(context.streams().stream(), () -> DeviceSlab.allocate(context, BYTES));
    assertThat(content(read)).isEqualTo(OLD);
    assertThat(cuda.calls("cuCtxSynchronize")).isZero();
  }

  @Test
  void aStreamWaitsForTheReadersBefore() {
    DeviceSlab read = releaseWhileItIsRead();
    CudaDriver.Stream stream = context.streams().stream();
    fillNext(stream, () -> DeviceSlab.allocate(context, BYTES, stream));
    assertThat(content(read)).isEqualTo(OLD);
    assertThat(cuda.calls("cuEventSynchronize")).as("no thread waits").isZero();
    assertThat(cuda.calls("cuCtxSynchronize")).isZero();
  }

  @Test
  void bytesOfTheHostAreThereWhenTheirCopyReturns() {
    DeviceSlab slab = allocate();
    slab.copyFromHost(0, pinned(NEW).segment());
    assertThat(content(slab)).isEqualTo(NEW);
  }

  @Test
  void whatIsOffloadedIsWhatTheDevicesQueueWrites() {
    DeviceSlab source = allocate();
    PinnedSlab bytes = pinned(NEW);
    try (OffloadBuffer buffer = OffloadBuffer.prepare(context.device(), List.of((long) BYTES))) {
      try (var _ = context.enter()) {
        driver.copyToDevice(source.address(), bytes.address(), BYTES, CudaDriver.Stream.DEFAULT);
      }
      buffer.save(List.of(source.address()));
      source.copyFromHost(0, pinned(OLD).segment());
      try (Loaded restored = buffer.restore()) {
        assertThat(TestFiles.bytes(restored.regions().getFirst())).isEqualTo(NEW);
      }
    }
  }

  @Test
  void whatIsReadIsWhatTheDevicesQueueWrites() {
    DeviceSlab source = allocate();
    PinnedSlab bytes = pinned(NEW);
    try (var _ = context.enter()) {
      driver.copyToDevice(source.address(), bytes.address(), BYTES, CudaDriver.Stream.DEFAULT);
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment read = arena.allocate(BYTES);
      GantrySession.shared()
          .copy(new Memory.OnDevice(context.device(), source.address(), BYTES), read);
      assertThat(read.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(NEW);
    }
  }

  @Test
  void nothingIsFreedOrAllocatedFromSlabToSlab() {
    DeviceSlab.allocate(context, BYTES).release();
    PinnedSlab.allocate(context, BYTES).release();
    cuda.clear();
    for (int i = 0; i < 5; i++) {
      DeviceSlab.allocate(context, BYTES).release();
      PinnedSlab.allocate(context, BYTES).release();
    }
    assertThat(cuda.calls("cuMemAlloc")).isZero();
    assertThat(cuda.calls("cuMemHostRegister")).isZero();
    assertThat(cuda.calls("cuEventCreate")).isZero();
    assertThat(cuda.calls("cuMemFree")).isZero();
    assertThat(LiveResources.snapshot().deviceBytes()).isEqualTo(BYTES);
    assertThat(LiveResources.snapshot().pinnedBytes()).isEqualTo(BYTES);
    assertThat(LiveResources.snapshot().slabs()).isZero();
  }

  @Test
  void aDeviceWithoutRoomGetsWhatIsIdle() {
    DeviceSlab.allocate(context, BYTES).release();
    cuda.fail("cuMemAlloc", 1, CUDA_OUT_OF_MEMORY, 0);
    DeviceSlab larger = keep(DeviceSlab.allocate(context, 2 * BYTES));
    assertThat(larger.size()).isEqualTo(2 * BYTES);
    assertThat(LiveResources.snapshot().deviceBytes()).isEqualTo(2 * BYTES);
  }

  @Test
  void aDeviceThatHasNoRoomEvenThenRefuses() {
    DeviceSlab.allocate(context, BYTES).release();
    cuda.clear();
    cuda.fail("cuMemAlloc", 0, CUDA_OUT_OF_MEMORY, 0);
    assertThatThrownBy(() -> DeviceSlab.allocate(context, 2 * BYTES))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("CUDA_ERROR_OUT_OF_MEMORY");
    assertThat(cuda.calls("cuMemAlloc")).isEqualTo(2);
  }

  @Test
  void memoryWhoseReadersCannotBeAwaitedIsFreed() {
    DeviceSlab slab = DeviceSlab.allocate(context, BYTES);
    cuda.fail("cuEventRecord", 1, CUDA_LAUNCH_FAILED, 0);
    slab.release();
    assertThat(cuda.count("device bytes")).isZero();
    assertThat(LiveResources.snapshot().deviceBytes()).isZero();
  }

  @Test
  void memoryWhoseWaitFailsIsNotHandedOn() {
    DeviceSlab.allocate(context, BYTES).release();
    cuda.fail("cuEventQuery", 1, CUDA_LAUNCH_FAILED, 0);
    assertThatThrownBy(() -> DeviceSlab.allocate(context, BYTES))
        .isInstanceOf(TransferException.class);
    assertThat(cuda.count("device bytes")).isZero();
  }
}
