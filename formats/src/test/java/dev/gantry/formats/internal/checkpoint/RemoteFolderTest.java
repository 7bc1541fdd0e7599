// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.testing.Latches;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.Thread.State;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// Checkpoints that are copied to a remote folder, fetched from there and removed there.
class RemoteFolderTest extends RemoteFolderFixture {
  @Test
  void filesOfAnotherFormatComeAndGoWithTheirCheckpoint() throws IOException {
    Retention one = new Retention(1, 0, Optional.empty());
    byte[] metadata = TestFiles.bytes(7, 100);
    try (CheckpointStore store = open("a", one, one)) {
      for (long step = 1; step <= 2; step++) {
        UnsavedCheckpoint groups = checkpoint(step);
        var _ =
            store.save(
                new UnsavedCheckpoint(
                    step,
                    groups.groups(),
                    List.of(file("__0_0.distcp", new byte[5000]), file(".metadata", metadata)),
                    Map.of(),
                    Map.of(),
                    Map.of(),
                    true),
                WriteOptions.defaults());
      }
      store.awaitUploads();
    }
    assertThat(folder.resolve("a/gantry-step-1")).doesNotExist();
    assertThat(folder.resolve("a/gantry-step-2/.metadata")).hasBinaryContent(metadata);
    assertThat(MemoryStore.names(bucket + "/run").stream().filter(name -> name.contains("step-1")))
        .isEmpty();
    requireFetchable("b", 2);
    try (Stream<Path> copies = Files.list(folder.resolve("b"))) {
      Path copy =
          copies.filter(each -> each.toString().contains("step-2")).findFirst().orElseThrow();
      assertThat(copy.resolve(".metadata")).hasBinaryContent(metadata);
      assertThat(copy.resolve("__0_0.distcp")).hasBinaryContent(new byte[5000]);
    }
  }

  @Test
  void whatIsSavedComesBackOnAnotherMachine() {
    try (CheckpointStore store = open("a", Retention.ALL, Retention.ALL)) {
      save(store, 1);
      save(store, 2);
    }
    assertThat(there()).containsExactly(1L, 2L);
    requireFetchable("b", 2);
    assertThat(here("b")).containsExactly(2L);
    try (CheckpointStore store = open("b", Retention.ALL, Retention.ALL)) {
      store.fetch(1);
      assertThat(here("b")).containsExactly(1L, 2L);
      // The numbers of saves continue from the checkpoints in the store, so this save is the
      // latest.
      save(store, 1);
      store.awaitUploads();
    }
    assertThat(there()).endsWith(1L);
    requireFetchable("c", 1);
  }

  @Test
  void bothPlacesKeepWhatTheirRulesSay() {
    try (CheckpointStore store = open("a", new Retention(1, 0, Optional.empty()), TWO)) {
      for (long step = 1; step <= 4; step++) {
        save(store, step);
        store.awaitUploads();
      }
    }
    assertThat(here("a")).endsWith(4L).hasSizeLessThanOrEqualTo(2);
    assertThat(there()).containsExactly(3L, 4L);
    assertThat(MemoryStore.names(bucket + "/run"))
        .noneMatch(name -> name.startsWith("gantry-step-1/"));
  }

  /// The first copy can never be removed.
  @Test
  void aCopyThatCannotBeRemovedHoldsUpNoOther() {
    AtomicBoolean refuses = new AtomicBoolean();
    MemoryStore.beforeEachWrite(call -> {
      if (call.equals("remove manifest.json") && refuses.getAndSet(false)) {
        throw new TransferException("remove", "x", new Failure.Remote(403, "forbidden"));
      }
    });
    try (CheckpointStore store = open("a", Retention.ALL, new Retention(1, 0, Optional.empty()))) {
      for (long step = 1; step <= 3; step++) {
        refuses.set(true);
        save(store, step);
        store.awaitUploads();
      }
    }
    assertThat(there()).containsExactly(1L, 3L);
  }

  @Test
  void whatFailedIsTriedAgain() {
    try (CheckpointStore store = open("a", Retention.ALL, Retention.ALL)) {
      AtomicInteger refused = new AtomicInteger();
      MemoryStore.beforeEachWrite(_ -> {
        refused.incrementAndGet();
        throw new TransferException("upload", "x", new Failure.Remote(503, "slow down"));
      });
      save(store, 1);
      assertThatThrownBy(store::awaitUploads).hasMessageContaining("slow down");
      assertThat(refused).hasValueGreaterThan(0);
      assertThat(here("a")).containsExactly(1L);
      MemoryStore.beforeEachWrite(null);
      save(store, 2);
    }
    assertThat(there()).containsExactly(1L, 2L);
  }

  @Test
  void waitingForUploadsTriesThoseThatFailed() {
    try (CheckpointStore store = open("a", Retention.ALL, Retention.ALL)) {
      refuseWrites();
      save(store, 1);
      assertThatThrownBy(store::awaitUploads).hasMessageContaining("slow down");
      MemoryStore.beforeEachWrite(null);
      store.awaitUploads();
      assertThat(there()).containsExactly(1L);
    }
  }

  @Test
  void whatIsRemovedByHandBeforeItsUploadHoldsUpNothing() throws IOException {
    try (CheckpointStore store = open("a", Retention.ALL, Retention.ALL)) {
      refuseWrites();
      save(store, 1);
      assertThatThrownBy(store::awaitUploads).hasMessageContaining("slow down");
      TestCheckpoints.delete(folder.resolve("a/gantry-step-1"));
      MemoryStore.beforeEachWrite(null);
      save(store, 2);
      store.awaitUploads();
    }
    assertThat(there()).containsExactly(2L);
  }

  @Test
  void onlyFoldersWithoutAManifestAreUnfinished() {
    try (CheckpointStore store = open("a", Retention.ALL, Retention.ALL)) {
      save(store, 1);
    }
    String left = "gantry-step-9-9-0123456789abcdef";
    MemoryStore.put(bucket + "/run/" + left + "/model.safetensors", new byte[5]);
    CheckpointListing found = RemoteScan.of(session, (Location.Remote) remote).listing();
    assertThat(found.saves()).hasSize(1);
    assertThat(found.unfinished()).containsExactly(left);
  }

  private static void refuseWrites() {
    MemoryStore.beforeEachWrite(_ -> {
      throw new TransferException("upload", "x", new Failure.Remote(503, "slow down"));
    });
  }

  /// The first of two failures is told.
  @Test
  void checkpointsThatAreDamagedBeforeTheirUploadAreNotUploaded() throws IOException {
    CheckpointStore store = open("a", Retention.ALL, Retention.ALL);
    refuseWrites();
    save(store, 1);
    save(store, 2);
    assertThatThrownBy(store::awaitUploads).hasMessageContaining("slow down");
    String file = "model-00001-of-00002.safetensors";
    Files.write(
        folder.resolve("a/gantry-step-1").resolve(file), new byte[1], StandardOpenOption.APPEND);
    Files.delete(folder.resolve("a/gantry-step-2").resolve(file));
    MemoryStore.beforeEachWrite(null);
    assertThatThrownBy(store::close)
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("wrong-size");
    assertThat(MemoryStore.names(bucket + "/run")).noneMatch(name -> name.contains("gantry-step"));
  }

  /// An OutOfMemoryError stands for all errors.
  @Test
  void anErrorCountsAsAFailureToo() {
    try (CheckpointStore store = open("a", Retention.ALL, Retention.ALL)) {
      MemoryStore.beforeEachWrite(_ -> {
        throw new OutOfMemoryError("none left");
      });
      save(store, 1);
      assertThatThrownBy(store::awaitUploads).isInstanceOf(OutOfMemoryError.class);
      MemoryStore.beforeEachWrite(null);
    }
    assertThat(there()).containsExactly(1L);
  }

  @Test
  void closingSaysWhatIsNotThere() {
    CheckpointStore store = open("a", Retention.ALL, Retention.ALL);
    refuseWrites();
    save(store, 1);
    assertThatThrownBy(store::close).hasMessageContaining("slow down");
    MemoryStore.beforeEachWrite(null);
    // The saver has released the folder, and the next saver uploads the checkpoint.
    open("a", Retention.ALL, Retention.ALL).close();
    assertThat(there()).containsExactly(1L);
  }

  /// The checkpoint loses a file before it is uploaded.
  @Test
  void aCheckpointThatCannotBeReadHoldsUpNoOther() throws IOException {
    CheckpointStore store = open("a", Retention.ALL, Retention.ALL);
    refuseWrites();
    save(store, 1);
    assertThatThrownBy(store::awaitUploads).hasMessageContaining("slow down");
    try (Stream<Path> files = Files.list(folder.resolve("a/gantry-step-1"))) {
      Files.delete(files.filter(file -> file.toString().endsWith("rs")).findFirst().orElseThrow());
    }
    MemoryStore.beforeEachWrite(null);
    save(store, 2);
    save(store, 3);
    assertThatThrownBy(store::awaitUploads).hasMessageContaining("gantry-step-1");
    assertThatThrownBy(store::close).hasMessageContaining("gantry-step-1");
    assertThat(there()).containsExactly(2L, 3L);
  }

  @Test
  void whatTheRulesDoNotKeepGoesWhenItIsUploaded() {
    try (CheckpointStore store = open("a", TWO, TWO)) {
      for (long step = 1; step <= 6; step++) {
        save(store, step);
      }
      store.awaitUploads();
      assertThat(here("a")).containsExactly(5L, 6L);
    }
  }

  @Test
  void onlyOursIsRemoved() {
    List<String> foreign =
        List.of("notes.txt", "gantry-step-9/mine.bin", "other/model.safetensors", "manifest.json");
    foreign.forEach(name -> MemoryStore.put(bucket + "/run/" + name, new byte[3]));
    MemoryStore.put(bucket + "/run/gantry-step-9/model-00001-of-00002.safetensors", new byte[5]);
    try (CheckpointStore store = open("a", TWO, TWO)) {
      for (long step = 8; step <= 12; step++) {
        save(store, step);
        store.awaitUploads();
      }
    }
    assertThat(MemoryStore.names(bucket + "/run")).containsAll(foreign);
    assertThat(MemoryStore.names(bucket + "/run"))
        .filteredOn(name -> name.startsWith("gantry-step-9/"))
        .containsExactly("gantry-step-9/mine.bin");
  }

  @Test
  void anInterruptedCloseUploadsWhatWasSaved() throws InterruptedException {
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    CheckpointStore store = open("a", Retention.ALL, Retention.ALL);
    MemoryStore.beforeEachWrite(_ -> {
      begun.countDown();
      await(goOn);
    });
    save(store, 1);
    await(begun);
    save(store, 2);
    AtomicBoolean interrupted = new AtomicBoolean();
    Thread closer =
        new Thread(() -> {
          Thread.currentThread().interrupt();
          store.close();
          interrupted.set(Thread.interrupted());
        });
    closer.start();
    Latches.awaitThat(() ->
        Set.of(State.WAITING, State.TIMED_WAITING, State.TERMINATED).contains(closer.getState()));
    goOn.countDown();
    closer.join();
    assertThat(interrupted).isTrue();
    assertThat(there()).containsExactly(1L, 2L);
  }

  @Test
  void whatIsBeingUploadedStaysOnTheDisk() {
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    Retention one = new Retention(1, 0, Optional.empty());
    try (CheckpointStore store = open("a", one, Retention.ALL)) {
      MemoryStore.beforeEachWrite(_ -> {
        begun.countDown();
        await(goOn);
      });
      save(store, 1);
      await(begun);
      save(store, 2);
      save(store, 3);
      // Checkpoint 2 was waiting for its upload, and was removed.
      assertThat(here("a")).containsExactly(1L, 3L);
      goOn.countDown();
      store.awaitUploads();
    }
    assertThat(there()).containsExactly(1L, 3L);
  }

  @Test
  void damageIsFoundWhenItIsFetched() {
    try (CheckpointStore store = open("a", Retention.ALL, Retention.ALL)) {
      save(store, 1);
    }
    String data =
        MemoryStore.names(bucket + "/run").stream()
            .filter(name -> name.endsWith(".safetensors"))
            .findFirst()
            .orElseThrow();
    long size = 0;
    try (FileBytes bytes =
        FileBytes.open(GantrySession.shared(), Location.of(remote + "/" + data))) {
      size = bytes.length();
    }
    MemoryStore.put(bucket + "/run/" + data, new byte[(int) size]);
    try (CheckpointStore store = open("b", Retention.ALL, Retention.ALL)) {
      assertThatThrownBy(() -> store.fetchLatest(false))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("checksum-mismatch");
      MemoryStore.put(bucket + "/run/" + data, new byte[3]);
      assertThatThrownBy(() -> store.fetchLatest(false)).hasMessageContaining("wrong-size");
    }
    assertThat(here("b")).isEmpty();
    assertThat(Files.exists(folder.resolve("b/gantry-step-1"))).isFalse();
  }

  @Test
  void aCheckpointThatLostAFileCountsAsNone() {
    try (CheckpointStore store = open("a", Retention.ALL, Retention.ALL)) {
      save(store, 1);
      save(store, 2);
      store.awaitUploads();
    }
    String lost =
        MemoryStore.names(bucket + "/run").stream()
            .filter(name -> name.startsWith("gantry-step-2-") && name.contains("/model-"))
            .findFirst()
            .orElseThrow();
    try (MemoryStore there = new MemoryStore()) {
      there.remove(Location.of(remote + "/" + lost));
    }
    assertThat(there()).containsExactly(1L);
    requireFetchable("b", 1);
  }

  @Test
  void wrongPlacesAreMisuse() {
    for (String place : List.of("/tmp/x", "memory://b/f?x=1", "memory://b/f#x")) {
      assertThatThrownBy(() ->
              CheckpointStore.open(
                  session,
                  folder.resolve("a"),
                  TWO,
                  50_000,
                  Optional.of(new CheckpointStore.Remote(Location.of(place), TWO))))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("optRemote must be a folder of another store");
    }
    assertThatThrownBy(() ->
            CheckpointStore.open(
                session,
                folder.resolve("a"),
                TWO,
                50_000,
                Optional.of(new CheckpointStore.Remote(Location.of("https://x.invalid/f"), TWO))))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("files of https can only be read; checkpoints and new files need");
  }

  @Test
  void aSaverOnAnEmptyDiskNumbersItsSavesAfterThoseThere() {
    try (CheckpointStore store = open("a", Retention.ALL, Retention.ALL)) {
      save(store, 1);
      save(store, 2);
    }
    try (CheckpointStore store = open("b", Retention.ALL, Retention.ALL)) {
      save(store, 3);
    }
    assertThat(CheckpointStore.list(session, folder.resolve("b")).latest().orElseThrow())
        .returns(3L, CheckpointFolder::sequence);
  }
}
