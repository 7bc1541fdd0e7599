// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.StridedRange;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Failing loads of slices onto two devices.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class SliceFaultStubTest {
  private static final int INVALID_VALUE = 1;
  private static final int ROWS = 300;
  private static final int ROW_BYTES = 600;
  private static final List<Device> DEVICES = List.of(new Device.Cuda(0), new Device.Cuda(1));

  @TempDir Path folder;
  private final StubControls cuda = StubControls.cuda();
  private final GantrySession gantry = GantrySession.open();
  private final TransferOptions options =
      TransferOptions.defaults()
          .withThreads(2)
          .withLimits(PlanLimits.DEFAULT.withRequestBytes(4 * PlanLimits.BLOCK_BYTES));
  private List<List<Sliced>> parts;

  @BeforeEach
  void write() {
    cuda.clear();
    Path path = TestFiles.write(folder.resolve("file"), 7, ROWS * ROW_BYTES);
    parts = List.of(half(Location.of(path), 0), half(Location.of(path), 1));
  }

  private static List<Sliced> half(Location file, int rank) {
    int half = ROW_BYTES / 2;
    StridedRange slice =
        new StridedRange(file, new Copy2D(rank * half, ROW_BYTES, 0, half, half, ROWS));
    return List.of(new Sliced(List.of(slice), (long) ROWS * half));
  }

  @AfterEach
  void close() {
    cuda.clear();
    gantry.close();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "cuMemcpy2DAsync",
        "cuMemcpyHtoDAsync",
        "cuEventRecord",
        "cuEventSynchronize",
        "cuStreamSynchronize",
        "cuMemAlloc",
        "cuStreamCreate"
      })
  void aFailureLeavesNothingOnAnyDevice(String function) {
    gantry.freeIdle();
    for (int nth : new int[] {1, 2, 5}) {
      cuda.clear();
      cuda.fail(function, nth, INVALID_VALUE, 0);
      try {
        gantry.loadSlices(DEVICES, parts, options).forEach(Loaded::close);
        assertThat(cuda.calls(function)).isLessThan(nth);
      } catch (TransferException failed) {
        assertThat(failed).hasMessageContaining(function);
      }
      cuda.clear();
      gantry.freeIdle();
    }
  }

  @Test
  void aCancelledLoadLeavesNothing() {
    Cancellation cancellation = new Cancellation();
    cancellation.cancel();
    assertThatThrownBy(
            () -> gantry.loadSlices(DEVICES, parts, options.withCancellation(cancellation)))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("cancelled");
  }

  @Test
  void aFileThatEndsTooSoonIsToldBeforeMemoryIsTaken() {
    Path path = TestFiles.write(folder.resolve("short"), 7, ROWS * ROW_BYTES / 2);
    Location file = Location.of(path);
    assertThatThrownBy(
            () -> gantry.loadSlices(DEVICES, List.of(half(file, 0), half(file, 1)), options))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("short");
    assertThat(cuda.calls("cuMemAlloc")).isZero();
  }
}
