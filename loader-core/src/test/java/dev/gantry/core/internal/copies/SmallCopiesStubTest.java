// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.copies;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.stub.StubControls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Random;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/// Small copies by a kernel, and what happens without one.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class SmallCopiesStubTest {
  private static final int COPIES = 3000;
  private static final int BYTES = 1000;

  private final StubControls cuda = StubControls.cuda();
  private final CudaContext context = CudaContext.of(new Device.Cuda(0));

  @AfterEach
  void clear() {
    cuda.clear();
  }

  /// Copies by a queue, and checks the bytes.
  ///
  /// @param end has the queue do what it has collected, and waits for it
  /// @return how many bytes came by copies of the driver
  private long copy(Consumer<CopyQueue> end) {
    return copy((queue, _) -> end.accept(queue));
  }

  private long copy(BiConsumer<CopyQueue, DeviceSlab> end) {
    PinnedSlab buffer = PinnedSlab.allocate(context, COPIES * BYTES);
    DeviceSlab target = DeviceSlab.allocate(context, COPIES * BYTES);
    byte[] bytes = new byte[COPIES * BYTES];
    new Random(1).nextBytes(bytes);
    buffer.segment().copyFrom(MemorySegment.ofArray(bytes));
    long before = cuda.count("to device bytes");
    try (CopyKernels kernels = new CopyKernels();
        CopyQueue queue = new CopyQueue(context, false, kernels)) {
      for (int i = 0; i < COPIES; i++) {
        queue.copyToDevice(target.address() + i * BYTES, buffer, i * BYTES, BYTES);
      }
      end.accept(queue, target);
      assertThat(bytesOf(target).mismatch(MemorySegment.ofArray(bytes))).isEqualTo(-1);
    } finally {
      target.release();
      buffer.release();
    }
    assertThat(cuda.count("modules")).isZero();
    return cuda.count("to device bytes") - before;
  }

  private MemorySegment bytesOf(DeviceSlab slab) {
    MemorySegment there = Arena.ofAuto().allocate(slab.size());
    try (var _ = context.enter()) {
      context.driver().copyToHost(there.address(), slab.address(), slab.size());
    }
    return there;
  }

  private static void recordAndAwait(CopyQueue queue) {
    queue.record(0);
    queue.await(0);
  }

  @Test
  void aKernelCopiesWhatFollowsTheFirstThousands() {
    assertThat(copy(SmallCopiesStubTest::recordAndAwait)).isEqualTo(1999 * BYTES);
  }

  @Test
  void drainingQueuesSmallCopiesToo() {
    assertThat(copy(CopyQueue::drain)).isEqualTo(1999 * BYTES);
  }

  @Test
  void laterCopiesOnTheDeviceSeeWhatSmallCopiesBrought() {
    DeviceSlab copy = DeviceSlab.allocate(context, COPIES * BYTES);
    try {
      long _ =
          copy((queue, target) -> {
            queue.copyOnDevice(copy.address(), target.address(), target.size());
            recordAndAwait(queue);
            assertThat(bytesOf(copy).mismatch(bytesOf(target))).isEqualTo(-1);
          });
    } finally {
      copy.release();
    }
  }

  /// A read counts as arrived when its queue is closed.
  @Test
  void closingQueuesSmallCopiesToo() {
    assertThat(launches(8, 1, false)).isEqualTo(1);
  }

  /// A launch has 170 pieces of at most 32 KiB, and costs as much as eight copies.
  @Test
  void aLaunchCopiesAsManyPiecesAsItCan() {
    assertThat(launches(7, 1000, true)).isZero();
    assertThat(launches(8, 1000, true)).isEqualTo(1);
    assertThat(launches(170, 32 << 10, true)).isEqualTo(1);
    assertThat(launches(177, 32 << 10, true)).isEqualTo(1);
    assertThat(launches(85, 33 << 10, true)).isEqualTo(1);
    assertThat(launches(93, 33 << 10, true)).isEqualTo(2);
    assertThat(launches(21, 256 << 10, true)).isEqualTo(1);
    assertThat(launches(8, (256 << 10) + 1, true)).isZero();
  }

  /// Copies by a queue whose kernel is loaded, and checks the bytes.
  ///
  /// @param drains whether to drain the queue before it is closed
  /// @return how many launches the copies took
  private long launches(int copies, int bytes, boolean drains) {
    PinnedSlab buffer = PinnedSlab.allocate(context, copies * bytes);
    DeviceSlab target = DeviceSlab.allocate(context, copies * bytes);
    buffer.segment().fill((byte) 7);
    try (CopyKernels kernels = new CopyKernels()) {
      while (!kernels.of(context).isReady()) {
        // Each call counts as a copy.
      }
      long before = cuda.calls("cuLaunchKernel");
      try (CopyQueue queue = new CopyQueue(context, false, kernels)) {
        for (int i = 0; i < copies; i++) {
          queue.copyToDevice(target.address() + i * bytes, buffer, i * bytes, bytes);
        }
        if (drains) {
          queue.drain();
        }
      }
      assertThat(bytesOf(target).mismatch(buffer.segment())).isEqualTo(-1);
      return cuda.calls("cuLaunchKernel") - before;
    } finally {
      target.release();
      buffer.release();
    }
  }

  /// Callers have counted the copies of a launch as queued before the launch fails.
  @Test
  void noCopyIsLostIfALaunchFails() {
    long driver =
        copy(queue -> {
          cuda.fail("cuLaunchKernel", 1, 719, 0);
          assertThatThrownBy(() -> queue.record(0)).isInstanceOf(TransferException.class);
          recordAndAwait(queue);
        });
    assertThat(driver).isEqualTo(1999 * BYTES);
  }

  @Test
  void noCopyRunsAfterAQueueWasClosedWhoseStreamCouldNotBeAwaited() {
    DeviceSlab source = DeviceSlab.allocate(context, BYTES);
    DeviceSlab target = DeviceSlab.allocate(context, BYTES);
    CopyQueue queue = new CopyQueue(context);
    queue.copyOnDevice(target.address(), source.address(), BYTES);
    cuda.fail("cuStreamSynchronize", 1, 719, 0);
    assertThatThrownBy(queue::close).isInstanceOf(TransferException.class);
    long before = cuda.count("freed while pending");
    source.release();
    target.release();
    CudaContext.freeIdle();
    assertThat(cuda.count("freed while pending")).isEqualTo(before);
  }

  @Test
  void theDriverCopiesEverythingIfItRefusesTheKernel() {
    cuda.fail("cuModuleLoadData", 1, 218, 0);
    assertThat(copy(SmallCopiesStubTest::recordAndAwait)).isEqualTo(COPIES * BYTES);
  }
}
