// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.testing.stub.StubControls;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Writes by `gds`, on a libcufile that supports it: aligned bytes go past the CPU, and a file
/// that cuFile refuses in mid-write is staged from that offset on.
@Tag("gpu-stub")
class DirectWriteStubTest extends WriteContract {
  private static final int INTERNAL_ERROR = 5030;

  private final StubControls cuFile = StubControls.cuFile();
  private final StubControls cuda = StubControls.cuda();
  private long wrongBases;
  private long disorder;

  @BeforeEach
  void directIoIsThere() {
    cuFile.clear();
    cuFile.direct(true);
    wrongBases = cuFile.count("wrong base");
    disorder = cuFile.count("disorder");
  }

  @AfterEach
  void nothingIsLeft() {
    cuFile.clear();
    cuFile.limit(-1);
    cuFile.direct(false);
    assertThat(cuFile.count("handles")).isZero();
    assertThat(cuFile.count("wrong base")).isEqualTo(wrongBases);
    assertThat(cuFile.count("disorder")).isEqualTo(disorder);
    gantry.freeIdle();
    assertThat(cuda.count("streams")).isZero();
    assertThat(cuda.count("events")).isZero();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void wholeAlignedRequestsPassTheCpu(boolean checksums) {
    long unaligned = cuFile.count("unaligned");
    WriteReport report =
        write(
            folder.resolve("file"),
            options().withChecksums(checksums),
            part(4096, 4 * REQUEST + 4097));
    assertThat(report.bytesByTransport())
        .isEqualTo(Map.of(Transport.GDS, 4L * REQUEST, Transport.STAGED, 4097L));
    assertThat(report.files().getFirst().reason()).isEmpty();
    assertThat(cuFile.calls("cuFileWrite")).isEqualTo(4);
    assertThat(cuFile.count("unaligned")).isEqualTo(unaligned);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void bytesAreOnlyCopiedToTheCpuForTheirChecksums(boolean checksums) {
    long before = cuda.count("to host bytes");
    WriteReport _ =
        write(folder.resolve("file"), options().withChecksums(checksums), part(0, 4 * REQUEST));
    assertThat(cuda.count("to host bytes") - before).isEqualTo(checksums ? 4L * REQUEST : 0);
  }

  @Test
  void neighboursInOneAllocationAreCopiedAsOne() {
    long before = cuda.calls("cuMemcpyDtoHAsync");
    WriteReport report =
        write(
            folder.resolve("file"),
            options().withTransport(Transport.STAGED),
            part(1, 10),
            part(11, REQUEST),
            part(11 + REQUEST, 99),
            part(7, 5));
    assertThat(report.writes()).isEqualTo(2);
    assertThat(cuda.calls("cuMemcpyDtoHAsync") - before).isEqualTo(3);
  }

  @Test
  void unalignedMemoryIsStaged() {
    WriteReport report = write(folder.resolve("file"), options(), part(1, 4 * REQUEST));
    assertThat(report.bytesByTransport()).isEqualTo(Map.of(Transport.STAGED, 4L * REQUEST));
    assertThat(cuFile.calls("cuFileWrite")).isZero();
  }

  @Test
  void shortCountsAreContinued() {
    cuFile.limit(1000);
    WriteReport report = write(folder.resolve("file"), options(), part(0, 2 * REQUEST));
    assertThat(report.bytesByTransport()).isEqualTo(Map.of(Transport.GDS, 2L * REQUEST));
    assertThat(cuFile.calls("cuFileWrite")).isEqualTo(2 * Math.ceilDiv(REQUEST, 1000));
  }

  @Test
  @Timeout(60)
  void aWriteOfNothingIsAnErrorAndNoEndlessLoop() {
    cuFile.limit(0);
    assertThatThrownBy(() ->
            write(
                folder.resolve("file"),
                options().withTransport(Transport.GDS),
                part(0, 2 * REQUEST)))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("cuFileWrite failed: ");
  }

  @Test
  void aCodeWithoutItsSignLeavesNoHole() {
    cuFile.fail("cuFileWrite", 2, INTERNAL_ERROR, 0);
    WriteReport report =
        write(folder.resolve("file"), options().withThreads(1), part(0, 4 * REQUEST));
    assertThat(report.bytesByTransport())
        .isEqualTo(Map.of(Transport.GDS, (long) REQUEST, Transport.STAGED, 3L * REQUEST));
    assertThat(report.files().getFirst().reason()).contains("CU_FILE_INTERNAL_ERROR");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aFileThatIsRefusedInMidWayIsStagedFromThereOn(boolean checksums) {
    for (int refused = 1; refused <= 4; refused++) {
      cuFile.clear();
      cuFile.fail("cuFileWrite", refused, -INTERNAL_ERROR, 0);
      WriteReport report =
          write(
              folder.resolve("file" + refused),
              options().withThreads(1).withChecksums(checksums),
              part(0, 4 * REQUEST + 5));
      assertThat(report.bytesByTransport().get(Transport.STAGED))
          .isEqualTo((5L - refused) * REQUEST + 5);
      assertThat(report.bytesByTransport().getOrDefault(Transport.GDS, 0L))
          .isEqualTo((refused - 1L) * REQUEST);
      assertThat(report.files().getFirst().reason()).contains("cuFileWrite", "5030");
      assertThat(cuFile.calls("cuFileWrite")).as("not asked again").isEqualTo(refused);
    }
  }

  @Test
  void aFileThatIsRefusedWhileSeveralWrite() {
    cuFile.fail("cuFileWrite", 0, -INTERNAL_ERROR, 0);
    WriteReport report =
        write(
            Map.of(
                folder.resolve("first"), List.of(part(0, 20 * REQUEST)),
                folder.resolve("second"), List.of(part(4096, 20 * REQUEST))),
            options().withThreads(4));
    assertThat(report.bytesByTransport()).isEqualTo(Map.of(Transport.STAGED, 40L * REQUEST));
    assertThat(report.files()).allMatch(file -> file.reason().contains("5030"));
  }

  @Test
  void aWriteOfNothingIsARefusalAndNoEndlessLoop() {
    cuFile.fail("cuFileWrite", 1, 0, 0);
    WriteReport report = write(folder.resolve("file"), options(), part(0, REQUEST));
    assertThat(report.bytesByTransport()).isEqualTo(Map.of(Transport.STAGED, (long) REQUEST));
    assertThat(report.files().getFirst().reason()).contains("nothing was written");
  }

  @ParameterizedTest
  @CsvSource({"GDS, -5030", "GDS, 5030", "COMPAT, -5030", "COMPAT, 5030"})
  void aPathThatWasAskedForIsTheOnlyOne(Transport asked, long returned) {
    cuFile.fail("cuFileWrite", 2, returned, 0);
    TransferException failure =
        catchThrowableOfType(
            TransferException.class,
            () ->
                write(
                    folder.resolve("file"), options().withTransport(asked), part(0, 4 * REQUEST)));
    assertThat(failure.failure()).isInstanceOf(Failure.CuFile.class);
    assertThat(failure).hasMessageContaining("cuFileWrite");
    assertThat(folder).isDirectoryNotContaining("glob:**{file,.gantry-*}");
  }

  @Test
  void whatFailsOnTheDeviceFailsTheWrite() {
    cuda.clear();
    for (String function :
        new String[] {
          "cuCtxSynchronize",
          "cuStreamCreate",
          "cuEventCreate",
          "cuMemcpyDtoHAsync",
          "cuEventRecord",
          "cuEventSynchronize",
          "cuStreamSynchronize"
        }) {
      gantry.freeIdle();
      cuda.fail(function, 1, 719, 0);
      TransferException failure =
          catchThrowableOfType(
              TransferException.class,
              () ->
                  write(
                      folder.resolve("file"),
                      options().withTransport(Transport.STAGED).withThreads(1),
                      part(1, 4 * REQUEST)));
      cuda.clear();
      assertThat(failure).as(function).isNotNull().hasMessageContaining(function);
      assertThat(folder).isDirectoryNotContaining("glob:**{file,.gantry-*}");
    }
  }
}
