// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Failure;
import dev.gantry.core.StubControls;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.CuFileBatches.Batch;
import dev.gantry.core.internal.natives.CuFileBatches.Entry;
import dev.gantry.core.internal.natives.CuFileBatches.Event;
import dev.gantry.core.internal.natives.CuFileBatches.Status;
import dev.gantry.testing.stub.NativeStubs;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The batch API itself: what its users leave to it.
class CuFileBatchesTest {
  private static final Duration LOOK = Duration.ofMillis(10);

  private final Arena arena = Arena.ofConfined();
  private CuFile cuFile;
  private CuFileBatches batches;
  private StubControls stub;
  private TestFile file;
  private CuFileHandle handle;

  @BeforeEach
  void setUp(@TempDir Path folder) throws IOException {
    cuFile = CuFile.load(NativeStubs.cuFile().toString()).orElseThrow(AssertionError::new);
    stub = StubControls.of(NativeStubs.cuFile());
    stub.clear();
    cuFile.openDriver();
    batches = cuFile.batches().orElseThrow(AssertionError::new);
    file = TestFile.open(Files.write(folder.resolve("weights"), new byte[65_536]));
    handle = cuFile.registerHandle(file.path(), file.descriptor());
  }

  @AfterEach
  void nothingIsLeft() {
    handle.close();
    file.close();
    arena.close();
    cuFile.closeDriver();
    for (String figure : List.of("opened", "handles", "batches", "entries", "disorder")) {
      assertThat(stub.count(figure)).as(figure).isZero();
    }
  }

  private List<Entry> entries(int count) {
    MemorySegment memory = arena.allocate(65_536);
    List<Entry> all = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      all.add(new Entry(handle, false, memory, 100, i * 100L, i * 100L));
    }
    return all;
  }

  @Test
  void whatWasNotBegunIsCancelledAndStillComes() {
    List<Entry> entries = entries(16);
    List<Event> events = new ArrayList<>();
    try (Batch batch = batches.open(16)) {
      batch.submit(entries);
      events.addAll(batch.status(4, LOOK));
      batch.cancel();
      while (events.size() < 16) {
        events.addAll(batch.status(1, LOOK));
      }
    }
    assertThat(events).extracting(Event::entry).doesNotHaveDuplicates();
    assertThat(events).extracting(Event::status).contains(Status.COMPLETE, Status.CANCELED);
    Event last = events.getLast();
    assertThat(
            catchThrowableOfType(
                    TransferException.class, () -> last.count(entries.get(last.entry())))
                .failure())
        .isEqualTo(new Failure.Cancelled());
  }

  @Test
  void askingForMoreThanThereIsRoomForIsRefused() {
    try (Batch batch = batches.open(2)) {
      batch.submit(entries(2));
      assertThatThrownBy(() -> batch.status(3, LOOK)).hasMessageContaining("CU_FILE_INVALID_VALUE");
      int came = 0;
      while (came < 2) {
        came += batch.status(1, LOOK).size();
      }
      assertThat(batch.status(0, LOOK)).isEmpty();
    }
  }

  @Test
  void aBatchLargerThanTheDriverTakesIsRefused() {
    assertThatThrownBy(() -> batches.open(129))
        .hasMessageContaining("129 entries")
        .hasMessageContaining("CU_FILE_INVALID_VALUE");
    assertThatThrownBy(() -> batches.open(0)).hasMessageContaining("CU_FILE_INVALID_VALUE");
  }

  @Test
  void aBatchThatWasRefusedIsNotTouchedAgain() {
    try (Batch batch = batches.open(2)) {
      stub.fail("cuFileBatchIOSubmit", 1, 5040, 0);
      assertThatThrownBy(() -> batch.submit(entries(2)))
          .hasMessageContaining("CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR");
      assertThatThrownBy(() -> batch.submit(entries(1))).isInstanceOf(IllegalStateException.class);
    }
    assertThat(stub.calls("cuFileBatchIODestroy")).isZero();
  }
}
