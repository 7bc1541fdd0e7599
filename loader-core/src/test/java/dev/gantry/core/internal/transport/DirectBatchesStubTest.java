// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.StubControls;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.cufile.CuFileRule;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Loads by cuFile's batches, past the CPU.
@Tag("gpu-stub")
class DirectBatchesStubTest extends TransportContract {
  private static final int INTERNAL_ERROR = 5030;

  private final StubControls cuFile = StubControls.cuFile();

  @BeforeEach
  void directIoIsThere() {
    cuFile.clear();
    cuFile.direct(true);
  }

  @AfterEach
  void nothingIsLeft() {
    cuFile.clear();
    cuFile.direct(false);
    gantry.close();
    assertThat(cuFile.count("entries")).isZero();
    assertThat(cuFile.count("batches")).isZero();
    assertThat(cuFile.count("disorder")).isZero();
  }

  @Override
  TransferOptions options() {
    return super.options().withCuFileRule(CuFileRule.BATCHES);
  }

  private TransferOptions direct() {
    return options()
        .withCachePolicy(CachePolicy.DIRECT)
        .withLimits(new PlanLimits(4096, 0, 1 << 20))
        .withThreads(3);
  }

  private List<ExtentRequest> scattered() {
    List<ExtentRequest> all = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      all.add(wanted(first, i * 15_000L, 3000, 8));
    }
    return all;
  }

  @Test
  void scatteredExtentsGoInBatches() {
    TransferReport report = loadAndCompare(scattered(), direct());
    assertThat(report.bytes(Transport.GDS)).isEqualTo(report.bytes());
    assertThat(cuFile.calls("cuFileRead")).isZero();
    assertThat(cuFile.calls("batch entry")).isEqualTo(report.reads());
    assertThat(cuFile.calls("cuFileBatchIOSubmit")).isLessThan(report.reads() / 2);
    assertThat(cuFile.count("wrong base")).isZero();
  }

  @Test
  void byDefaultNoneDo() {
    TransferReport report =
        loadAndCompare(scattered(), direct().withCuFileRule(CuFileRule.DEFAULT));
    assertThat(cuFile.calls("cuFileRead")).isEqualTo(report.reads());
    assertThat(cuFile.calls("cuFileBatchIOSetUp")).isZero();
  }

  @Test
  void afterAFailedEntryTheOthersGoOneByOne() {
    cuFile.fail("batch entry", 20, -INTERNAL_ERROR, 0);
    TransferReport report = loadAndCompare(scattered(), direct());
    assertThat(report.bytes(Transport.GDS)).isEqualTo(report.bytes());
    assertThat(cuFile.calls("cuFileRead")).isBetween(1L, 32L);
  }

  @Test
  void aFileThatCuFileFailsIsStaged() {
    cuFile.fail("batch entry", 0, -INTERNAL_ERROR, 0);
    cuFile.fail("cuFileRead", 0, -INTERNAL_ERROR, 0);
    TransferReport report = loadAndCompare(scattered(), direct());
    assertThat(report.bytes(Transport.STAGED)).isEqualTo(report.bytes());
    assertThat(report.files().getFirst().reason()).contains("CU_FILE_INTERNAL_ERROR");
  }

  @Test
  void aFailureWithNothingToFallBackToNamesTheFile() {
    cuFile.fail("batch entry", 0, -INTERNAL_ERROR, 0);
    cuFile.fail("cuFileRead", 0, -INTERNAL_ERROR, 0);
    TransferException failure =
        catchThrowableOfType(
            TransferException.class,
            () -> gantry.load(scattered(), device(), direct().withTransport(Transport.GDS)));
    assertThat(failure).hasMessageContaining(first.toString());
    assertThat(failure.failure()).isInstanceOf(Failure.CuFile.class);
  }

  @Test
  void aBatchThatCannotBeSubmittedIsReadOneByOne() {
    cuFile.fail("cuFileBatchIOSubmit", 1, 5040, 0);
    TransferReport report = loadAndCompare(scattered(), direct());
    assertThat(report.bytes(Transport.GDS)).isEqualTo(report.bytes());
  }

  @Test
  void aCancellationEndsTheWaitForSlowEntries() {
    Cancellation cancellation = new Cancellation();
    cuFile.stall(20);
    TransferOptions options =
        direct().withCancellation(cancellation).withProgress((_, _) -> cancellation.cancel());
    assertThat(
            catchThrowableOfType(
                    TransferException.class, () -> gantry.load(scattered(), device(), options))
                .failure())
        .isEqualTo(new Failure.Cancelled());
    cuFile.stall(0);
  }
}
