package dev.gantry.core.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.Loaded;
import dev.gantry.core.TransferException;
import dev.gantry.core.memory.LiveResources;
import dev.gantry.core.plan.Wanted;
import dev.gantry.core.stub.StubControls;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Loads past the CPU, on a libcufile that can do it, and what becomes of those that it refuses.
@Tag("gpu-stub")
class DirectPathStubTest extends TransferPathContract {
  private static final int INTERNAL_ERROR = 5030;
  private static final int PINNING_FAILED = 5036;

  private final StubControls cuFile = StubControls.cuFile();

  @Override
  protected Device device() {
    return new Device.Cuda(0);
  }

  @Override
  protected @Nullable PathKind path() {
    return null;
  }

  @Override
  protected Set<PathKind> carriers() {
    return Set.of(PathKind.GDS, PathKind.STAGED);
  }

  @BeforeEach
  void directIoIsThere() {
    cuFile.clear();
    cuFile.direct(true);
  }

  @AfterEach
  void nothingIsLeft() {
    cuFile.clear();
    cuFile.direct(false);
    assertThat(cuFile.count("handles")).isZero();
  }

  private List<Wanted> wholeFile() {
    return List.of(wanted(first, 0, LENGTH, 8));
  }

  /// Past the page cache, by one reader.
  private TransferOptions direct() {
    return options().withCachePolicy(CachePolicy.DIRECT).withThreads(1);
  }

  @Test
  void weightsAreRegisteredForTheLoadOnly() {
    try (Loaded loaded = gantry.load(wholeFile(), device(), direct())) {
      assertThat(loaded.report().bytes(PathKind.GDS)).isEqualTo(loaded.report().bytes());
      assertThat(loaded.report().files().getFirst().reason()).isEmpty();
      assertThat(cuFile.calls("cuFileBufRegister")).isPositive();
      assertThat(cuFile.count("buffers")).isZero();
      assertThat(LiveResources.snapshot().registrations()).isZero();
    }
  }

  @Test
  void aSlabThatCannotBeRegisteredIsReadAllTheSame() {
    cuFile.fail("cuFileBufRegister", 1, PINNING_FAILED, 0);
    TransferReport report = loadAndCompare(wholeFile(), direct());
    assertThat(report.bytes(PathKind.GDS)).isEqualTo(report.bytes());
    assertThat(report.files().getFirst().path()).isEqualTo(PathKind.GDS);
    assertThat(report.files().getFirst().reason())
        .contains("cuFileBufRegister", "CU_FILE_GPU_MEMORY_PINNING_FAILED");
  }

  @Test
  void theWindowOfEachDeviceCounts() {
    try (Loaded first = gantry.load(wholeFile(), new Device.Cuda(1), direct())) {
      assertThat(first.report().files().getFirst().reason())
          .as("the stub's second GPU has a window of 1 MiB")
          .contains("cuda:1", "BAR1 window has room for 524288 more");
      assertThat(first.report().bytes(PathKind.GDS)).isEqualTo(first.report().bytes());
    }
    assertThat(cuFile.calls("cuFileBufRegister")).isZero();
    loadAndCompare(wholeFile(), direct());
    assertThat(cuFile.calls("cuFileBufRegister")).isPositive();
  }

  @Test
  void aCodeWithoutItsSignIsNoCountOfBytes() {
    cuFile.fail("cuFileRead", 2, INTERNAL_ERROR, 0);
    TransferReport report = loadAndCompare(wholeFile(), direct());
    assertThat(report.bytes(PathKind.GDS)).isEqualTo(options().limits().requestBytes());
    assertThat(report.files().getFirst().reason()).contains("CU_FILE_INTERNAL_ERROR");
  }

  @ParameterizedTest
  @EnumSource(names = {"GDS", "COMPAT"})
  void aCodeWithoutItsSignFailsALoadThatHasNoOtherPath(PathKind asked) {
    cuFile.fail("cuFileRead", 2, INTERNAL_ERROR, 0);
    TransferException failure =
        catchThrowableOfType(
            TransferException.class,
            () -> gantry.load(wholeFile(), device(), direct().withPath(asked)));
    assertThat(failure.failure()).isInstanceOf(Failure.CuFile.class);
  }
}
