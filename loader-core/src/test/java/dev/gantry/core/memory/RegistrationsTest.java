package dev.gantry.core.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.stub.StubControls;
import dev.gantry.core.testing.NoLeaks;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/// Slabs registered with cuFile: the stub sees in which order they are deregistered and freed.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class RegistrationsTest {
  private static final long SLAB_BYTES = 1 << 20;

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

  @Test
  void slabsAreRegisteredOnceAndDeregisteredBeforeTheyAreFreed() {
    Registrations registrations = new Registrations(cuFile, 8 * SLAB_BYTES);
    DeviceSlab slab = DeviceSlab.allocate(context, SLAB_BYTES);

    assertThat(registrations.register(slab)).isTrue();
    assertThat(registrations.register(slab)).isTrue();
    assertThat(stub.calls("cuFileBufRegister")).isEqualTo(1);
    assertThat(LiveResources.snapshot().registrations()).isEqualTo(1);
    long frees = cuda.calls("cuMemFree");
    slab.release();

    assertThat(stub.calls("cuFileBufDeregister")).isEqualTo(1);
    assertThat(cuda.calls("cuMemFree")).isEqualTo(frees + 1);
  }

  @Test
  void whatTheBudgetDoesNotCoverIsNotRegistered() {
    Registrations registrations = new Registrations(cuFile, SLAB_BYTES);
    DeviceSlab first = DeviceSlab.allocate(context, SLAB_BYTES);
    DeviceSlab second = DeviceSlab.allocate(context, SLAB_BYTES);

    assertThat(registrations.register(first)).isTrue();
    assertThat(registrations.register(second)).isFalse();
    first.release();
    assertThat(registrations.register(second)).isTrue();
    second.release();
  }

  @Test
  void clearingDeregistersWhatLivesOn() {
    Registrations registrations = new Registrations(cuFile, SLAB_BYTES);
    DeviceSlab slab = DeviceSlab.allocate(context, SLAB_BYTES);
    registrations.register(slab);

    registrations.clear();
    assertThat(LiveResources.snapshot().registrations()).isZero();
    slab.release();

    assertThat(stub.calls("cuFileBufDeregister")).isEqualTo(1);
  }
}
