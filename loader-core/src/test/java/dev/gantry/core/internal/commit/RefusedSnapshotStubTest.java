// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.stub.StubControls;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/// Snapshots of two devices whose drivers refuse calls.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class RefusedSnapshotStubTest {
  private static final int LENGTH = 10_000;
  private static final int CUDA_OUT_OF_MEMORY = 2;
  private static final int CUDA_LAUNCH_FAILED = 719;

  private final StubControls cuda = StubControls.cuda();
  private final SnapshotMemory memory = new SnapshotMemory(SnapshotLimits.DEFAULT);
  private List<DeviceSlab> slabs = List.of();
  private List<NewFile> files = List.of();

  @BeforeEach
  void open() {
    slabs = List.of(slab(0), slab(1));
    List<Source> parts = slabs.stream().map(RefusedSnapshotStubTest::source).toList();
    files = List.of(new NewFile(Path.of("file"), parts));
  }

  private static DeviceSlab slab(int device) {
    return DeviceSlab.allocate(CudaContext.of(new Device.Cuda(device)), LENGTH);
  }

  private static Source source(DeviceSlab slab) {
    return new Memory.OnDevice(slab.context().device(), slab.address(), LENGTH);
  }

  @AfterEach
  void close() {
    cuda.clear();
    memory.close();
    Slab.releaseAll(slabs);
  }

  @Test
  void memoryThatCannotBePinnedIsNoRoom() {
    cuda.fail("cuMemHostRegister", 0, CUDA_OUT_OF_MEMORY, 0);
    assertThat(SnapshotContract.take(memory, files)).isEmpty();
    cuda.clear();
    SnapshotContract.take(memory, files).orElseThrow().close();
  }

  @Test
  void memoryOfOneDeviceServesAgainAfterThatOfAnotherWasRefused() {
    long before = LiveResources.snapshot().slabs();
    cuda.fail("cuMemHostRegister", 2, CUDA_OUT_OF_MEMORY, 0);
    assertThat(SnapshotContract.take(memory, files)).isEmpty();
    assertThat(LiveResources.snapshot().slabs()).isEqualTo(before + 1);
    cuda.clear();
    SnapshotContract.take(memory, files).orElseThrow().close();
    assertThat(LiveResources.snapshot().slabs()).isEqualTo(before + 2);
  }

  /// Each device is awaited before its copies, when its queue is given up, and before its memory
  /// would be kept. So the first two calls of cuCtxSynchronize succeed, and the next four fail.
  @Test
  void memoryThatADeviceMayStillWriteToIsNotFreed() {
    long before = LiveResources.snapshot().slabs();
    cuda.clear();
    cuda.fail("cuStreamSynchronize", 0, CUDA_LAUNCH_FAILED, 0);
    for (int i = 0; i < 4; i++) {
      // A call that one failure ends does not count for the next failure, which therefore ends the
      // next call.
      cuda.fail("cuCtxSynchronize", 3, CUDA_LAUNCH_FAILED, 0);
    }
    assertThatThrownBy(() -> SnapshotContract.take(memory, files))
        .isInstanceOf(TransferException.class);
    cuda.fail("cuCtxSynchronize", 0, CUDA_LAUNCH_FAILED, 0);
    memory.close();
    assertThat(LiveResources.snapshot().slabs()).isEqualTo(before + 2);
    cuda.clear();
    memory.close();
    assertThat(LiveResources.snapshot().slabs()).isEqualTo(before);
  }

  @Test
  void memoryServesAgainWhereTheWholeDeviceWasAwaited() {
    cuda.clear();
    cuda.fail("cuStreamSynchronize", 1, CUDA_LAUNCH_FAILED, 0);
    assertThatThrownBy(() -> SnapshotContract.take(memory, files))
        .isInstanceOf(TransferException.class);
    long allocated = cuda.calls("cuMemAlloc");
    SnapshotContract.take(memory, files).orElseThrow().close();
    assertThat(cuda.calls("cuMemAlloc")).isEqualTo(allocated);
  }

  @Test
  void allQueuesAreClosedAlsoWhereOneFails() {
    cuda.clear();
    cuda.fail("cuStreamSynchronize", 0, CUDA_LAUNCH_FAILED, 0);
    assertThatThrownBy(() -> SnapshotContract.take(memory, files))
        .isInstanceOf(TransferException.class);
    assertThat(cuda.calls("cuStreamDestroy")).isEqualTo(2);
  }
}
