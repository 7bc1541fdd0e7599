// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.testing.Latches;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.Thread.State;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Checkpoints that are also uploaded to another store.
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
        name,
        DType.U8,
        TensorShape.of(bytes.length),
        new Memory.OnHost(MemorySegment.ofArray(bytes)));
  }

  private static void save(CheckpointStore store, long step) {
    var _ = store.save(checkpoint(step), WriteOptions.defaults());
  }

  /// Returns the steps of the complete checkpoints in the other store, as a new saver finds them.
  private List<Long> there() {
    StoreFolder fresh = new StoreFolder(session, folder.resolve("look"));
    fresh.create();
    return RemoteFolder.open(session, remote, fresh, List.of(), "0123456789abcdef")
        .checkpoints()
        .stream()
        .map(CheckpointFolder::step)
        .toList();
  }

  private List<Long> here(String name) {
    return CheckpointStore.list(GantrySession.shared(), folder.resolve(name)).checkpoints().stream()
        .map(CheckpointFolder::step)
        .toList();
  }

  /// Requires that all tensors have the values of the checkpoint's step.
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
      store.fetchLatest(false);
      CheckpointFolder latest =
          CheckpointStore.list(GantrySession.shared(), folder.resolve(name)).latest().orElseThrow();
      assertThat(latest.step()).isEqualTo(step);
      requireWhole(latest);
    }
  }

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

  private static NewFile file(String name, byte[] bytes) {
    return new NewFile(Path.of(name), List.of(new Memory.OnHost(MemorySegment.ofArray(bytes))));
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
    MemoryStore.beforeEachWrite(_ -> {
      throw new TransferException("upload", "x", new Failure.Remote(503, "slow down"));
    });
    save(store, 1);
    assertThatThrownBy(store::close).hasMessageContaining("slow down");
    MemoryStore.beforeEachWrite(null);
    // The saver has released the folder, and the next saver uploads the checkpoint.
    open("a", Retention.ALL, Retention.ALL).close();
    assertThat(there()).containsExactly(1L);
  }

  /// The test looks as if the process had been killed before the upload of the last of three
  /// files.
  @Test
  void theNextSaverSendsOnlyTheFilesThatAreMissing() {
    List<String> first = new CopyOnWriteArrayList<>();
    CheckpointStore store = open("a", Retention.ALL, Retention.ALL);
    MemoryStore.beforeEachWrite(call -> {
      if (call.contains("00002-of")) {
        throw new TransferException("upload", "x", new Failure.Remote(503, "slow down"));
      }
      first.add(call);
    });
    save(store, 1);
    assertThatThrownBy(store::close).hasMessageContaining("slow down");
    assertThat(first)
        .containsExactlyInAnyOrder(
            "upload model.safetensors.index.json", "upload model-00001-of-00002.safetensors");
    List<String> next = new CopyOnWriteArrayList<>();
    MemoryStore.beforeEachWrite(next::add);
    open("a", Retention.ALL, Retention.ALL).close();
    MemoryStore.beforeEachWrite(null);
    assertThat(next)
        .containsExactly(
            "upload gantry-saver",
            "upload model-00002-of-00002.safetensors",
            "upload manifest.json");
    requireFetchable("b", 1);
  }

  /// The test looks as if the process had been killed before each call in turn. The store has the
  /// old or the new checkpoint, and the next saver completes the upload.
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
      assertThat(MemoryStore.names(bucket + "/run")).noneMatch(name -> name.contains("step-2"));
    }
    assertThat(there()).containsExactly(1L, 5L);
  }

  /// The first machine has saved steps 1 to 3; the second continues from step 1.
  @Test
  void aStepThatIsThereIsSavedAgain() {
    try (CheckpointStore first = open("a", Retention.ALL, Retention.ALL)) {
      for (long step = 1; step <= 3; step++) {
        save(first, step);
      }
    }
    try (CheckpointStore second = open("b", Retention.ALL, Retention.ALL)) {
      second.fetch(1);
      for (long step = 2; step <= 4; step++) {
        save(second, step);
        second.awaitUploads();
      }
    }
    assertThat(there()).containsExactly(1L, 2L, 3L, 4L);
    assertThat(here("b")).containsExactly(1L, 2L, 3L, 4L);
    try (CheckpointStore third = open("c", Retention.ALL, Retention.ALL)) {
      for (long step = 1; step <= 4; step++) {
        third.fetch(step);
      }
    }
    CheckpointStore.list(GantrySession.shared(), folder.resolve("c"))
        .checkpoints()
        .forEach(this::requireWhole);
  }

  /// At every moment, all files of every manifest exist with the bytes that the manifest
  /// describes.
  @Test
  void noReaderEverSeesAManifestOfOtherData() {
    try (CheckpointStore first = open("a", Retention.ALL, TWO)) {
      save(first, 1);
      save(first, 2);
    }
    try (CheckpointStore second = open("b", Retention.ALL, TWO)) {
      second.fetch(1);
      AtomicInteger looks = new AtomicInteger();
      MemoryStore.beforeEachWrite(_ -> {
        requireAllWhole();
        looks.incrementAndGet();
      });
      // The new checkpoint has other bytes, but files of the same sizes.
      UnsavedCheckpoint other = checkpoint(7);
      var _ =
          second.save(
              new UnsavedCheckpoint(2, other.groups(), Map.of(), Map.of(), Map.of()),
              WriteOptions.defaults());
      second.awaitUploads();
      assertThat(looks).hasValueGreaterThan(3);
    }
    MemoryStore.beforeEachWrite(null);
    requireAllWhole();
  }

  private void requireAllWhole() {
    for (String name : MemoryStore.names(bucket + "/run")) {
      if (name.endsWith("/" + StoreFolder.MANIFEST)) {
        Manifest manifest = Manifest.read(session, Location.of(remote + "/" + name));
        for (Manifest.FileEntry entry : manifest.files()) {
          Location file =
              Location.of(remote + "/" + name.replace(StoreFolder.MANIFEST, entry.name()));
          try (FileBytes bytes = FileBytes.open(session, file)) {
            assertThat(bytes.crc32c(0, bytes.length()))
                .as(file.toString())
                .isEqualTo(entry.crc32c());
          }
        }
      }
    }
  }

  /// Another saver takes over the store's folder before each call of the first saver's upload.
  @Test
  void aSupersededSaverChangesNoFileOfAnother() {
    for (int next = 0; ; next++) {
      int call = next;
      String place = "run-" + call;
      AtomicInteger left = new AtomicInteger(call);
      Map<String, Integer> ofSecond = new LinkedHashMap<>();
      CheckpointStore first = open("a" + call, place);
      CheckpointStore[] second = new CheckpointStore[1];
      save(first, 1);
      first.awaitUploads();
      MemoryStore.beforeEachWrite(_ -> {
        if (left.getAndDecrement() == 0) {
          MemoryStore.beforeEachWrite(null);
          second[0] = open("b" + call, place);
          UnsavedCheckpoint other = checkpoint(9);
          var _ =
              second[0].save(
                  new UnsavedCheckpoint(2, other.groups(), Map.of(), Map.of(), Map.of()),
                  WriteOptions.defaults());
          second[0].awaitUploads();
          ofSecond.putAll(sums(place));
        }
      });
      save(first, 2);
      boolean failed = false;
      try {
        first.close();
      } catch (TransferException e) {
        assertThat(e).hasMessageContaining("another saver has taken this folder");
        failed = true;
      }
      MemoryStore.beforeEachWrite(null);
      if (second[0] == null) {
        assertThat(failed).isFalse();
        break;
      }
      assertThat(failed).as("call " + call).isTrue();
      second[0].close();
      assertThat(sums(place)).as("call " + call).containsAllEntriesOf(ofSecond);
      try (CheckpointStore third = open("c" + call, place)) {
        third.fetchLatest(false);
        CheckpointFolder latest =
            CheckpointStore.list(GantrySession.shared(), folder.resolve("c" + call))
                .latest()
                .orElseThrow();
        int sum =
            session.checksum(
                new Source.FilePart(latest.open("model").tensors().get("first").extent()));
        assertThat(sum)
            .as("call " + call)
            .isEqualTo(session.checksum(checkpoint(9).groups().get("model").getFirst().source()));
      }
    }
  }

  private CheckpointStore open(String name, String place) {
    return CheckpointStore.open(
        session,
        folder.resolve(name),
        Retention.ALL,
        50_000,
        Optional.of(
            new CheckpointStore.Remote(
                Location.of("memory://" + bucket + "/" + place), Retention.ALL)));
  }

  /// Returns the CRC32C of each file of the checkpoints.
  private Map<String, Integer> sums(String place) {
    Map<String, Integer> sums = new LinkedHashMap<>();
    for (String name : MemoryStore.names(bucket + "/" + place)) {
      if (name.startsWith("gantry-step-")) {
        try (FileBytes bytes =
            FileBytes.open(session, Location.of("memory://" + bucket + "/" + place + "/" + name))) {
          sums.put(name, bytes.crc32c(0, bytes.length()));
        }
      }
    }
    return sums;
  }

  /// The checkpoint loses a file before it is uploaded.
  @Test
  void aCheckpointThatCannotBeReadHoldsUpNoOther() throws IOException {
    CheckpointStore store = open("a", Retention.ALL, Retention.ALL);
    MemoryStore.beforeEachWrite(_ -> {
      throw new TransferException("upload", "x", new Failure.Remote(503, "slow down"));
    });
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
