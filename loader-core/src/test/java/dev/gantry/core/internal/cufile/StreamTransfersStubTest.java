// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Failure;
import dev.gantry.core.StubControls;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.CuFileHandle;
import java.io.IOException;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Short counts and failures, which only the stub can be asked for. Its streams run late: they read
/// nothing before a thread waits.
@Tag("gpu-stub")
class StreamTransfersStubTest extends StreamTransfersContract {
  private static final int EIO = 5;

  private final StubControls stub = StubControls.cuFile();

  @Override
  boolean registers() {
    return true;
  }

  @BeforeEach
  void clear() {
    stub.clear();
  }

  @AfterEach
  void nothingIsLeft() {
    stub.clear();
    stub.limit(-1);
    assertThat(stub.count("streams")).isZero();
    assertThat(stub.count("disorder")).isZero();
  }

  @Test
  void nothingIsReadBeforeTheStreamComesToIt() throws IOException {
    CuFileHandle file = weights();
    try (StreamTransfers transfers = transfers()) {
      read(transfers, file, new Landing(0, 5000, 0));
      assertThat(stub.calls("cuFileReadAsync")).isEqualTo(1);
      assertThat(stub.calls("stream read")).isZero();
      transfers.check();
      assertThat(stub.calls("stream read")).isEqualTo(1);
    }
  }

  @Test
  void shortCountsAreContinuedWhereNothingIsQueuedBehindThem() throws IOException {
    CuFileHandle file = weights();
    List<Landing> landings = random(new Random(4), 100);
    try (StreamTransfers transfers = transfers()) {
      stub.limit(777);
      landings.forEach(landing -> read(transfers, file, landing));
      transfers.finish();
      stub.limit(-1);
      assertHolds(landings);
    }
  }

  @Test
  void shortCountsAreFailuresWhereOthersMayHaveSeenThem() throws IOException {
    CuFileHandle file = weights();
    try (StreamTransfers transfers = transfers()) {
      stub.limit(777);
      read(transfers, file, new Landing(100, 1000, 0));
      TransferException failure = catchThrowableOfType(TransferException.class, transfers::check);
      assertThat(failure.failure()).isEqualTo(new Failure.EndOfFile(223));
      assertThat(failure).hasMessageContaining(file.file() + " offset 877");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "-5017, CU_FILE_INVALID_MAPPING_RANGE",
    "5017, CU_FILE_INVALID_MAPPING_RANGE",
    "-1, EPERM",
    "-22, EINVAL",
    "-9999, unknown"
  })
  void aRequestThatFailsNamesItsFileAndOffset(long returned, String name) throws IOException {
    CuFileHandle file = weights();
    List<Landing> landings = random(new Random(5), 10);
    try (StreamTransfers transfers = transfers()) {
      stub.fail("stream read", 10, returned, 0);
      landings.forEach(landing -> read(transfers, file, landing));
      Landing last = landings.getLast();
      assertThatThrownBy(transfers::finish)
          .hasMessageStartingWith("cuFileReadAsync failed: ")
          .hasMessageContaining(
              file.file() + " at offset " + last.fileOffset() + ", length " + last.length())
          .hasMessageContaining(name);
      // The others arrived, and the next request is as good as any.
      read(transfers, file, last);
      transfers.finish();
      assertHolds(landings);
    }
  }

  @Test
  void aFailureIsReportedByTheCheckAndNotByTheNextRequest() throws IOException {
    CuFileHandle file = weights();
    List<Landing> landings = random(new Random(5), 300);
    assertThat(landings).hasSizeGreaterThan(260);
    try (StreamTransfers transfers = transfers()) {
      stub.fail("stream read", 10, -5030, 0);
      landings.forEach(landing -> read(transfers, file, landing));
      Landing tenth = landings.get(9);
      assertThatThrownBy(transfers::check)
          .hasMessageContaining(file.file() + " at offset " + tenth.fileOffset())
          .hasMessageContaining("CU_FILE_INTERNAL_ERROR");
      read(transfers, file, tenth);
      transfers.check();
      assertHolds(landings);
    }
  }

  @Test
  void aRequestThatCannotBeQueued() throws IOException {
    CuFileHandle file = weights();
    try (StreamTransfers transfers = transfers()) {
      stub.fail("cuFileWriteAsync", 1, 5011, 999);
      assertThatThrownBy(() -> transfers.write(file, memory(), 0, 77, 10))
          .hasMessageContaining(file.file() + " at offset 77, length 10")
          .hasMessageContaining("CUDA 999");
      transfers.check();
    }
  }

  @Test
  void aStreamThatFailsBecauseItIsRegisteredIsUsedWithout() throws IOException {
    CuFileHandle file = weights();
    List<Landing> landings = random(new Random(7), 10);
    try (StreamTransfers transfers = transfers()) {
      stub.fail("stream read", 3, -EIO, 0);
      landings.forEach(landing -> read(transfers, file, landing));
      transfers.finish();
      assertHolds(landings);
      assertThat(stub.count("streams")).isZero();
      read(transfers, file, new Landing(5, 6, 7));
      assertThat(stub.calls("stream read")).isEqualTo(12);
      transfers.check();
      stub.fail("stream read", 1, -EIO, 0);
      read(transfers, file, new Landing(5, 6, 7));
      assertThatThrownBy(transfers::finish).hasMessageContaining("EIO");
    }
    assertThat(stub.calls("cuFileStreamDeregister")).isEqualTo(1);
  }

  @Test
  void aStreamThatCannotBeRegistered() {
    stub.fail("cuFileStreamRegister", 1, 5038, 0);
    assertThatThrownBy(() -> transfers()).hasMessageContaining("CU_FILE_ASYNC_NOT_SUPPORTED");
  }
}
