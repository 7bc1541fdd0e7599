// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Shape;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Checkpoints that are copied to another store.
@ExtendWith(NoLeaks.class)
class RemoteFolderTest {
  private static final Retention TWO = new Retention(2, 0, Optional.empty());

  @TempDir private Path folder;
  private final GantrySession session = GantrySession.open();
  private final String bucket = UUID.randomUUID().toString();
  private final Location remote = Location.of("memory://" + bucket + "/run");

  @AfterEach
  void close() {
    MemoryStore.beforeEachWrite(null);
    session.close();
  }

  private CheckpointStore open(String name, Retention local, Retention there) {
    return CheckpointStore.open(
        session,
        folder.resolve(name),
        local,
        50_000,
        Optional.of(new CheckpointStore.Remote(remote, there)));
  }

  private static UnsavedCheckpoint checkpoint(long step) {
    byte[] bytes = TestFiles.bytes(step, 70_000);
    SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
    groups.put(
        "model",
        List.of(tensor("first", bytes), tensor("second", TestFiles.bytes(step + 1000, 30_000))));
    return new UnsavedCheckpoint(step, groups, Map.of(), Map.of("loss", 1.0 / step), Map.of());
  }

  private static NewTensor tensor(String name, byte[] bytes) {
    return new NewTensor(
        name, DType.U8, Shape.of(bytes.length), new Memory.OnHost(MemorySegment.ofArray(bytes)));
  }

  private static void save(CheckpointStore store, long step) {
    var _ = store.save(checkpoint(step), WriteOptions.defaults());
  }

  /// The steps that are whole in the other store, as a new saver finds them.
  private List<Long> there() {
    StoreFolder fresh = new StoreFolder(folder.resolve("look"), session.folders());
    fresh.create();
    return RemoteFolder.open(session, remote, fresh).checkpoints().stream()
        .map(CheckpointFolder::step)
        .toList();
  }

  private List<Long> here(String name) {
    return CheckpointStore.list(folder.resolve(name)).checkpoints().stream()
        .map(CheckpointFolder::step)
        .toList();
  }

  /// All tensors have the values of the step.
  private void requireWhole(CheckpointFolder stored) {
    UnsavedCheckpoint expected = checkpoint(stored.step());
    SequencedMap<String, StoredTensor> tensors = stored.open("model").tensors();
    assertThat(tensors).hasSize(2);
    for (NewTensor tensor : expected.groups().get("model")) {
      StoredTensor found = tensors.get(tensor.name());
      int sum = session.checksum(new Source.FilePart(found.extent()));
      assertThat(sum).isEqualTo(session.checksum(tensor.source()));
      stored.check(found, sum);
    }
  }

  private void requireFetchable(String name, long step) {
    try (CheckpointStore store = open(name, Retention.ALL, Retention.ALL)) {
      store.fetchLatest();
      CheckpointFolder latest = CheckpointStore.list(folder.resolve(name)).latest().orElseThrow();
      assertThat(latest.step()).isEqualTo(step);
      requireWhole(latest);
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
      // Counted on from what is there, so that this is the last.
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

  /// Such as no memory.
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
    MemoryStore.beforeEachWrite(_ -> {
      throw new TransferException("upload", "x", new Failure.Remote(503, "slow down"));
    });
    save(store, 1);
    assertThatThrownBy(store::close).hasMessageContaining("slow down");
    MemoryStore.beforeEachWrite(null);
    // The folder is free, and the next saver uploads it.
    open("a", Retention.ALL, Retention.ALL).close();
    assertThat(there()).containsExactly(1L);
  }

  /// As if the process had been killed before each call: old or new, and the next saver finishes it.
  @Test
  void anUploadThatEndsAnywhereLeavesTheOldOrTheNew() {
    try (CheckpointStore store = open("a", Retention.ALL, Retention.ALL)) {
      save(store, 1);
    }
    for (int most = 0; ; most++) {
      AtomicInteger calls = new AtomicInteger();
      int allowed = most;
      MemoryStore.beforeEachWrite(call -> {
        if (calls.getAndIncrement() >= allowed) {
          throw new TransferException("upload", call, new Failure.Remote(0, "killed"));
        }
      });
      long step = most + 2L;
      boolean opened = false;
      boolean whole;
      try (CheckpointStore store = open("a", TWO, TWO)) {
        opened = true;
        save(store, step);
        store.awaitUploads();
        whole = true;
      } catch (TransferException e) {
        assertThat(e).hasMessageContaining("killed");
        whole = false;
      }
      MemoryStore.beforeEachWrite(null);
      List<Long> found = there();
      assertThat(found).hasSizeGreaterThan(0);
      if (whole) {
        assertThat(found).endsWith(step);
      }
      requireFetchable("at-" + most, found.getLast());
      if (opened) {
        open("a", TWO, TWO).close();
        assertThat(there()).endsWith(step).hasSizeLessThanOrEqualTo(3);
        requireFetchable("after-" + most, step);
      }
      if (whole && calls.get() < allowed) {
        break;
      }
    }
  }

  @Test
  void anotherSaverTakesTheFolder() {
    CheckpointStore first = open("a", Retention.ALL, Retention.ALL);
    save(first, 1);
    first.awaitUploads();
    try (CheckpointStore second = open("b", Retention.ALL, Retention.ALL)) {
      save(second, 5);
      second.awaitUploads();
      save(first, 2);
      assertThatThrownBy(first::awaitUploads)
          .hasMessageContaining("another saver has taken this folder");
      assertThatThrownBy(first::close).isInstanceOf(TransferException.class);
      assertThat(here("a")).containsExactly(1L, 2L);
    }
    assertThat(there()).containsExactly(1L, 5L);
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
      // 2 waited, and was removed.
      assertThat(here("a")).containsExactly(1L, 3L);
      goOn.countDown();
      store.awaitUploads();
    }
    assertThat(there()).containsExactly(1L, 3L);
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
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
    try (FileBytes bytes = FileBytes.open(Location.of(remote + "/" + data))) {
      size = bytes.length();
    }
    MemoryStore.put(bucket + "/run/" + data, new byte[(int) size]);
    try (CheckpointStore store = open("b", Retention.ALL, Retention.ALL)) {
      assertThatThrownBy(store::fetchLatest)
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("checksum-mismatch");
      MemoryStore.put(bucket + "/run/" + data, new byte[3]);
      assertThatThrownBy(store::fetchLatest).hasMessageContaining("wrong-size");
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
            .filter(name -> name.startsWith("gantry-step-2/model-"))
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
    for (String place : List.of("/tmp/x", "memory://b/f?x=1")) {
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
        .hasMessageContaining("files of https cannot be written");
  }
}
