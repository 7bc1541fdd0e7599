// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.copies;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.stub.StubControls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Random;
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
  /// @return how many bytes came by copies of the driver
  private long copy() {
    PinnedSlab buffer = PinnedSlab.allocate(context, COPIES * BYTES);
    DeviceSlab target = DeviceSlab.allocate(context, COPIES * BYTES);
    byte[] bytes = new byte[COPIES * BYTES];
    new Random(1).nextBytes(bytes);
    buffer.segment().copyFrom(MemorySegment.ofArray(bytes));
    long before = cuda.count("to device bytes");
    try (CopyKernels kernels = new CopyKernels();
        CopyQueue queue = new CopyQueue(context, false, kernels);
        Arena arena = Arena.ofConfined()) {
      for (int i = 0; i < COPIES; i++) {
        queue.copyToDevice(target.address() + i * BYTES, buffer, i * BYTES, BYTES);
      }
      queue.record(0);
      queue.await(0);
      MemorySegment there = arena.allocate(bytes.length);
      try (var _ = context.enter()) {
        context.driver().copyToHost(there.address(), target.address(), bytes.length);
      }
      assertThat(there.mismatch(MemorySegment.ofArray(bytes))).isEqualTo(-1);
    } finally {
      target.release();
      buffer.release();
    }
    assertThat(cuda.count("modules")).isZero();
    return cuda.count("to device bytes") - before;
  }

  @Test
  void aKernelCopiesWhatFollowsTheFirstThousands() {
    assertThat(copy()).isEqualTo(1999 * BYTES);
  }

  @Test
  void theDriverCopiesEverythingIfItRefusesTheKernel() {
    cuda.fail("cuModuleLoadData", 1, 218, 0);
    assertThat(copy()).isEqualTo(COPIES * BYTES);
  }
}
