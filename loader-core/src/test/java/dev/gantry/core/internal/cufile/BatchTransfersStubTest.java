// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Cancellation;
import dev.gantry.core.StubControls;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.cufile.BatchTransfers.Request;
import dev.gantry.core.internal.natives.CuFileHandle;
import dev.gantry.core.internal.natives.CuFileParameters;
import dev.gantry.core.internal.natives.CuFileParameters.Size;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Short counts, failures and long waits, which only the stub can be asked for.
@Tag("gpu-stub")
class BatchTransfersStubTest extends BatchTransfersContract {
  private final StubControls stub = StubControls.cuFile();

  @BeforeEach
  void clear() {
    stub.clear();
  }

  @AfterEach
  void nothingIsUnderWay() {
    stub.clear();
    stub.limit(-1);
    stub.stall(0);
    assertThat(stub.count("entries")).isZero();
    assertThat(stub.count("batches")).isZero();
    assertThat(stub.count("disorder")).isZero();
  }

  private List<Request> requests(CuFileHandle file, int most) {
    return random(new Random(4), most).stream().map(landing -> read(file, landing)).toList();
  }

  @Test
  void shortCountsAreContinued() throws IOException {
    CuFileHandle file = weights();
    stub.limit(777);
    run(batches(), requests(file, 100));
    stub.limit(-1);
    assertHolds(random(new Random(4), 100));
  }

  @ParameterizedTest
  @CsvSource({
    // returned, status, failure, name
    "-5017, 0, 5017, CU_FILE_INVALID_MAPPING_RANGE",
    "5017, 0, 5017, CU_FILE_INVALID_MAPPING_RANGE",
    "-5, 64, 5, EIO",
    "-1, 64, 1, EPERM",
    "0, 4, 0, INVALID",
    "0, 32, 0, TIMEOUT",
    "-9999, 16, 9999, unknown",
  })
  void anEntryThatFailsNamesItsFileAndOffset(long returned, int status, int code, String name)
      throws IOException {
    CuFileHandle file = weights();
    List<Request> requests =
        List.of(read(file, new Landing(0, 4096, 0)), read(file, new Landing(12_345, 4096, 8192)));
    stub.fail("batch entry", 0, returned, status);
    TransferException failure =
        catchThrowableOfType(TransferException.class, () -> run(batches(), requests));
    assertThat(failure).hasMessageMatching(".*" + file.file() + " at offset (0|12345), length .*");
    assertThat(failure.failure().describe()).contains(" " + code + " " + name);
  }

  @Test
  void theOthersOfAFailedBatchAreEndedBeforeItIsDestroyed() throws IOException {
    CuFileHandle file = weights();
    stub.fail("batch entry", 3, -5030, 0);
    stub.stall(4);
    assertThat(
            catchThrowableOfType(
                TransferException.class, () -> run(batches(), requests(file, 100))))
        .hasMessageContaining("CU_FILE_INTERNAL_ERROR");
    assertThat(stub.calls("cuFileBatchIOCancel")).isZero();
    assertThat(stub.calls("cuFileBatchIODestroy")).isEqualTo(1);
  }

  @ParameterizedTest
  @ValueSource(strings = {"cuFileBatchIOSetUp", "cuFileBatchIOSubmit"})
  void aBatchThatDoesNotBegin(String function) throws IOException {
    CuFileHandle file = weights();
    stub.fail(function, 1, 5039, 0);
    assertThat(
            catchThrowableOfType(TransferException.class, () -> run(batches(), requests(file, 50))))
        .hasMessageStartingWith(function + " failed: ")
        .hasMessageContaining("CU_FILE_INTERNAL_BATCH_SETUP_ERROR");
    assertThat(stub.calls("cuFileBatchIODestroy")).as("it would end the process").isZero();
    run(batches(), requests(file, 50));
  }

  @Test
  void slowEntriesAreWaitedFor() throws IOException {
    CuFileHandle file = weights();
    stub.stall(30);
    run(batches(), requests(file, 50));
    assertHolds(random(new Random(4), 50));
    assertThat(stub.calls("cuFileBatchIOGetStatus")).isGreaterThan(30);
  }

  @Test
  void neverMoreEntriesThanTheDriverTakes() throws Exception {
    CuFileParameters parameters = cuFile.parameters().orElseThrow(AssertionError::new);
    closeAll();
    parameters.set(Size.PROPERTIES_IO_BATCHSIZE, 7);
    try {
      openAll(folder);
      assertThat(budget().most()).isEqualTo(7);
      // The stub refuses the eighth.
      readBySeveralThreads();
    } finally {
      closeAll();
      parameters.set(Size.PROPERTIES_IO_BATCHSIZE, 128);
    }
  }

  @Test
  void aThreadThatWaitsForRoomSeesACancellation() throws Exception {
    CuFileHandle file = weights();
    BatchTransfers batches = batches();
    int all = budget().take(budget().most(), () -> true);
    Cancellation cancellation = new Cancellation();
    cancellation.whenCancelled(budget()::wake);
    CountDownLatch asked = new CountDownLatch(1);
    List<Throwable> failures = new ArrayList<>();
    Thread waiting =
        Thread.ofPlatform()
            .start(() -> {
              try {
                batches.run(
                    requests(file, 5),
                    () -> {
                      asked.countDown();
                      return !cancellation.isCancelled();
                    },
                    _ -> {});
              } catch (TransferException e) {
                failures.add(e);
              }
            });
    asked.await();
    cancellation.cancel();
    waiting.join();
    budget().giveBack(all);
    assertThat(failures).singleElement().asString().contains("cancelled");
    assertThat(stub.calls("cuFileBatchIOSubmit")).isZero();
  }
}
