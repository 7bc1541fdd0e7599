// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Transport;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.testing.stub.NativeStubs;
import dev.gantry.testing.stub.StubControls;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Writes from many pieces of memory, by a libcufile that writes several pieces with one request.
@Tag("gpu-stub")
class VectorWriteStubTest extends WriteContract {
  private static final int BLOCK = 4096;
  private static final int INTERNAL_ERROR = 5030;

  private final StubControls cuFile = StubControls.of(NativeStubs.newCuFile());

  @BeforeEach
  void theNewestLibraryIsThere() {
    System.setProperty(CuFile.PROPERTY, NativeStubs.newCuFile().toString());
    cuFile.clear();
    cuFile.direct(true);
  }

  @AfterEach
  void nothingIsLeft() {
    cuFile.clear();
    cuFile.limit(-1);
    cuFile.direct(false);
    System.clearProperty(CuFile.PROPERTY);
    assertThat(cuFile.count("handles")).isZero();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void alignedPiecesOfOneRequestPassTheCpuTogether(boolean checksums) {
    long unaligned = cuFile.count("unaligned");
    WriteReport report =
        write(
            folder.resolve("file"),
            options().withChecksums(checksums),
            part(8 * BLOCK, BLOCK),
            part(2 * BLOCK, 2 * BLOCK),
            part(0, BLOCK));
    assertThat(report.bytesByTransport()).isEqualTo(Map.of(Transport.GDS, 4L * BLOCK));
    assertThat(cuFile.calls("cuFileWritev")).isEqualTo(1);
    assertThat(cuFile.calls("cuFileWrite")).isZero();
    assertThat(cuFile.count("unaligned")).isEqualTo(unaligned);
  }

  @Test
  void onePieceThatIsNotAlignedHasAllStaged() {
    WriteReport report =
        write(
            folder.resolve("file"),
            options(),
            part(8 * BLOCK, BLOCK),
            part(2 * BLOCK + 1, BLOCK),
            part(0, BLOCK));
    assertThat(report.bytesByTransport()).isEqualTo(Map.of(Transport.STAGED, 3L * BLOCK));
    assertThat(cuFile.calls("cuFileWritev")).isZero();
  }

  @Test
  void shortCountsAreContinuedWithinAPiece() {
    cuFile.limit(1000);
    WriteReport report =
        write(folder.resolve("file"), options(), part(8 * BLOCK, BLOCK), part(0, BLOCK));
    assertThat(report.bytesByTransport()).isEqualTo(Map.of(Transport.GDS, 2L * BLOCK));
    assertThat(cuFile.calls("cuFileWritev")).isEqualTo(Math.ceilDiv(2 * BLOCK, 1000));
  }

  @Test
  void aRequestThatFailsIsStaged() {
    cuFile.fail("cuFileWritev", 1, -INTERNAL_ERROR, 0);
    WriteReport report =
        write(folder.resolve("file"), options(), part(8 * BLOCK, BLOCK), part(0, BLOCK));
    assertThat(report.bytesByTransport()).isEqualTo(Map.of(Transport.STAGED, 2L * BLOCK));
    assertThat(report.files().getFirst().reason()).contains("cuFileWritev", "5030");
  }
}
