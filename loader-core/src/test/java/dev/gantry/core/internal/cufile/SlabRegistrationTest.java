// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.stub.StubControls;
import java.util.List;
import java.util.function.ToLongFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/// Slabs that are registered with cuFile. The stub records the order in which they are
/// deregistered and freed.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class SlabRegistrationTest {
  private static final long SLAB_BYTES = 1 << 20;
  private static final int PINNING_FAILED = 5036;
  private static final int INTERNAL_ERROR = 5030;

  private final CudaContext context = CudaContext.of(new Device.Cuda(0));
  private final StubControls cuda = StubControls.cuda();
  private final StubControls stub = StubControls.cuFile();
  private CuFile cuFile;
  private long freedWhileRegistered;

  @BeforeEach
  void openDriver() {
    cuFile = CuFile.find().orElseThrow(AssertionError::new);
    cuFile.openDriver();
    stub.clear();
    cuda.clear();
    freedWhileRegistered = cuda.count("freed while registered");
  }

  @AfterEach
  void closeDriver() {
    assertThat(cuda.count("freed while registered")).isEqualTo(freedWhileRegistered);
    cuFile.closeDriver();
  }

  private RegistrationCache cache(ToLongFunction<Device.Cuda> budgetBytes) {
    return new RegistrationCache(new CuFileHardware(cuFile, budgetBytes));
  }

  private static String refusal(RegistrationCache cache, DeviceSlab slab) {
    try (RegistrationCache.Use use = cache.use(slab)) {
      return use.refusal();
    }
  }

  @Test
  void slabsAreRegisteredOnceAndDeregisteredBeforeTheyAreFreed() {
    RegistrationCache registrations = cache(_ -> 8 * SLAB_BYTES);
    DeviceSlab slab = DeviceSlab.allocate(context, SLAB_BYTES);

    assertThat(refusal(registrations, slab)).isEmpty();
    assertThat(refusal(registrations, slab)).isEmpty();
    assertThat(stub.calls("cuFileBufRegister")).isEqualTo(1);
    assertThat(LiveResources.snapshot().registrations()).isEqualTo(1);
    long frees = cuda.calls("cuMemFree");
    slab.release();
    CudaContext.freeIdle();

    assertThat(stub.calls("cuFileBufDeregister")).isEqualTo(1);
    assertThat(cuda.calls("cuMemFree")).isEqualTo(frees + 1);
  }

  @Test
  void whatTheBudgetDoesNotCoverIsNotRegistered() {
    RegistrationCache registrations = cache(_ -> SLAB_BYTES);
    DeviceSlab first = DeviceSlab.allocate(context, SLAB_BYTES);
    DeviceSlab second = DeviceSlab.allocate(context, SLAB_BYTES);

    assertThat(refusal(registrations, first)).isEmpty();
    assertThat(refusal(registrations, second)).contains("BAR1 window has room for 0 more");
    first.release();
    assertThat(refusal(registrations, second)).isEmpty();
    second.release();
  }

  @Test
  void eachDeviceHasItsOwnBudget() {
    RegistrationCache registrations = cache(device -> (device.ordinal() + 1) * SLAB_BYTES);
    CudaContext other = CudaContext.of(new Device.Cuda(1));
    List<DeviceSlab> slabs =
        List.of(
            DeviceSlab.allocate(context, SLAB_BYTES),
            DeviceSlab.allocate(context, SLAB_BYTES),
            DeviceSlab.allocate(other, SLAB_BYTES),
            DeviceSlab.allocate(other, SLAB_BYTES),
            DeviceSlab.allocate(other, SLAB_BYTES));

    assertThat(slabs.stream().map(slab -> refusal(registrations, slab)).map(String::isEmpty))
        .containsExactly(true, false, true, true, false);
    Slab.releaseAll(slabs);
    assertThat(stub.calls("cuFileBufDeregister")).isEqualTo(3);
  }

  @Test
  void whatCuFileRefusesIsNotAskedForAgain() {
    RegistrationCache registrations = cache(_ -> SLAB_BYTES);
    DeviceSlab slab = DeviceSlab.allocate(context, SLAB_BYTES);
    stub.fail("cuFileBufRegister", 1, PINNING_FAILED, 0);

    for (int i = 0; i < 3; i++) {
      assertThat(refusal(registrations, slab)).contains("CU_FILE_GPU_MEMORY_PINNING_FAILED");
    }
    assertThat(stub.calls("cuFileBufRegister")).isEqualTo(1);
    slab.release();

    assertThat(stub.calls("cuFileBufDeregister")).isZero();
    DeviceSlab next = DeviceSlab.allocate(context, SLAB_BYTES);
    assertThat(refusal(registrations, next)).as("its room was not taken").isEmpty();
    next.release();
  }

  @Test
  void memoryThatCannotBeDeregisteredIsNotFreed() {
    RegistrationCache registrations = cache(_ -> SLAB_BYTES);
    DeviceSlab slab = DeviceSlab.allocate(context, SLAB_BYTES);
    assertThat(refusal(registrations, slab)).isEmpty();
    stub.fail("cuFileBufDeregister", 1, INTERNAL_ERROR, 0);

    assertThatThrownBy(() -> registrations.forget(List.of(slab)))
        .hasMessageContaining("cuFileBufDeregister");
    slab.release();

    assertThat(stub.calls("cuFileBufDeregister")).as("asked again").isEqualTo(2);
  }

  @Test
  void clearingDeregistersWhatLivesOn() {
    RegistrationCache registrations = cache(_ -> SLAB_BYTES);
    DeviceSlab slab = DeviceSlab.allocate(context, SLAB_BYTES);
    assertThat(refusal(registrations, slab)).isEmpty();

    registrations.clear();
    assertThat(LiveResources.snapshot().registrations()).isZero();
    slab.release();

    assertThat(stub.calls("cuFileBufDeregister")).isEqualTo(1);
  }
}
