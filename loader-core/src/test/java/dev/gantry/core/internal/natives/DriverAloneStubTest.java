// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.testing.stub.StubControls;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// libcufile's driver opens while no thread allocates device memory.
@Tag("gpu-stub")
class DriverAloneStubTest {
  private final CuFile cuFile = CuFile.find().orElseThrow(AssertionError::new);
  private final StubControls controls = StubControls.cuFile();

  @Test
  void theDriverOpensWhenAnAllocationHasEnded() throws Exception {
    long opened = controls.calls("cuFileDriverOpen");
    CompletableFuture<Void> opening;
    CudaDriver.ALLOCATING.readLock().lock();
    try {
      opening = new CompletableFuture<>();
      Thread opener =
          Thread.ofPlatform()
              .start(() -> {
                cuFile.openDriver();
                opening.complete(null);
              });
      while (opener.isAlive() && opener.getState() != Thread.State.WAITING) {
        Thread.onSpinWait();
      }
      assertThat(controls.calls("cuFileDriverOpen")).isEqualTo(opened);
    } finally {
      CudaDriver.ALLOCATING.readLock().unlock();
    }
    opening.get(1, TimeUnit.MINUTES);
    cuFile.closeDriver();
    assertThat(controls.calls("cuFileDriverOpen")).isEqualTo(opened + 1);
  }

  @Test
  void anAllocationWaitsWhileTheDriverOpens() throws Exception {
    CudaContext context = CudaContext.of(new Device.Cuda(0));
    CompletableFuture<CudaDriver.DeviceMemory> allocated = new CompletableFuture<>();
    CudaDriver.ALLOCATING.writeLock().lock();
    try {
      Thread allocator =
          Thread.ofPlatform()
              .start(() -> {
                try (var _ = context.enter()) {
                  allocated.complete(context.driver().allocateDevice(512));
                }
              });
      while (allocator.isAlive() && allocator.getState() != Thread.State.WAITING) {
        Thread.onSpinWait();
      }
      assertThat(allocated).isNotDone();
    } finally {
      CudaDriver.ALLOCATING.writeLock().unlock();
    }
    try (var _ = context.enter()) {
      context.driver().freeDevice(allocated.get(1, TimeUnit.MINUTES));
    }
  }
}
