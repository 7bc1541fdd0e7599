// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.stub.StubControls;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/// Kernels that the driver refuses, and kernels that a session keeps.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class ConversionStubTest {
  private static final int UNSUPPORTED_PTX = 222;
  private static final int OUT_OF_RESOURCES = 701;

  private final StubControls cuda = StubControls.cuda();
  private final Device.Cuda device = new Device.Cuda(1);
  private final GantrySession session = GantrySession.open();
  private final List<DeviceSlab> slabs = new ArrayList<>();

  @BeforeEach
  void allocate() {
    slabs.add(DeviceSlab.allocate(CudaContext.of(device), 4096));
  }

  @AfterEach
  void close() {
    cuda.clear();
    slabs.forEach(DeviceSlab::release);
    session.close();
    assertThat(cuda.count("modules")).isZero();
  }

  private Dequantisation.Task task(DType to) {
    long address = slabs.getFirst().address();
    return new Dequantisation.Task(
        ConversionContract.plain(to, 64), List.of(address), address + 1024);
  }

  private void convert(DType... to) {
    session.convert(List.of(to).stream().map(this::task).toList(), device, new Cancellation());
  }

  @Test
  void aKernelIsLoadedOnceForEachDtypeAndUnloadedAtTheEnd() {
    cuda.clear();
    session.prepareConversion(ConversionContract.plain(DType.F16, 64), device);
    assertThat(cuda.count("modules")).isEqualTo(1);
    convert(DType.F16, DType.BF16);
    convert(DType.F16, DType.BF16);
    assertThat(cuda.calls("cuModuleLoadData")).isEqualTo(2);
    assertThat(cuda.calls("cuLaunchKernel")).isEqualTo(4);
    session.close();
    assertThat(cuda.count("modules")).isZero();
  }

  @Test
  void anOldDriverIsNamedAndMayBeTriedAgain() {
    cuda.fail("cuModuleLoadData", 1, UNSUPPORTED_PTX, 0);
    assertThatThrownBy(() -> convert(DType.BF16))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("cuModuleLoadData")
        .hasMessageContaining("dequantise");
    convert(DType.BF16);
  }

  @Test
  void aModuleWithoutItsEntryIsUnloaded() {
    cuda.fail("cuModuleGetFunction", 1, 500, 0);
    assertThatThrownBy(() -> convert(DType.BF16)).isInstanceOf(TransferException.class);
    assertThat(cuda.count("modules")).isZero();
  }

  @Test
  void kernelsAreUnloadedAlsoIfTheEndOfTheSessionFails() {
    convert(DType.BF16);
    // This memory is idle, so the closing of the session frees it.
    DeviceSlab.allocate(CudaContext.of(device), 4096).release();
    cuda.fail("cuMemFree", 1, OUT_OF_RESOURCES, 0);
    assertThatThrownBy(session::close).isInstanceOf(TransferException.class);
    assertThat(cuda.count("modules")).isZero();
  }

  /// The caller frees memory after a failure, so no earlier launch may still use it.
  @Test
  void aFailedLaunchWaitsForThoseBefore() {
    convert(DType.BF16);
    cuda.clear();
    cuda.fail("cuLaunchKernel", 2, OUT_OF_RESOURCES, 0);
    assertThatThrownBy(() -> convert(DType.BF16, DType.BF16))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("cuLaunchKernel");
    assertThat(cuda.count("pending operations")).isZero();
  }
}
