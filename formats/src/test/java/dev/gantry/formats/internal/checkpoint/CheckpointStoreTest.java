// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.AppendedFile;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(NoLeaks.class)
class CheckpointStoreTest {
  @TempDir Path parent;
  private final GantrySession session = GantrySession.open();

  @AfterEach
  void close() {
    session.close();
  }

  private Path root() {
    return parent.resolve("runs/first");
  }

  private CheckpointStore open(Retention retention) {
    return CheckpointStore.open(session, root(), retention, 50_000);
  }

  /// Returns a checkpoint of several data files, whose bytes the step determines.
  private static UnsavedCheckpoint checkpoint(long step) {
    List<NewTensor> model = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      byte[] bytes = TestFiles.bytes(step * 100 + i, 4 * (1000 + 700 * i));
      model.add(
          new NewTensor(
              "layer." + i,
              DType.F32,
              TensorShape.of(bytes.length / 4),
              new Memory.OnHost(MemorySegment.ofArray(bytes))));
    }
    SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
    groups.put("model", model);
    groups.put("optimizer", List.of());
    return new UnsavedCheckpoint(
        step,
        groups,
        Map.of("epoch", "3"),
        Map.of("loss", step == 3 ? Double.NaN : 1.0 / step),
        Map.of("note", "a \"quoted\" note"));
  }

  private void requireWhole(CheckpointFolder stored) {
    SequencedMap<String, StoredTensor> tensors = stored.open("model").tensors();
    List<NewTensor> expected = checkpoint(stored.step()).groups().get("model");
    assertThat(tensors.keySet())
        .containsExactlyInAnyOrderElementsOf(expected.stream().map(NewTensor::name).toList());
    for (NewTensor tensor : expected) {
      StoredTensor info = tensors.get(tensor.name());
      assertThat(info.shape()).isEqualTo(tensor.shape());
      int sum = session.checksum(new Source.FilePart(info.extent()));
      assertThat(sum).isEqualTo(session.checksum(tensor.source()));
      stored.check(info, sum);
    }
    assertThat(stored.open("optimizer").tensors()).isEmpty();
  }

  private static List<Long> steps(List<CheckpointFolder> checkpoints) {
    return checkpoints.stream().map(CheckpointFolder::step).toList();
  }

  @Test
  void whatIsSavedIsThere() {
    try (CheckpointStore store = open(Retention.ALL)) {
      assertThat(CheckpointStore.list(GantrySession.shared(), root()).latest()).isEmpty();
      SavedCheckpoint saved = store.save(checkpoint(7), WriteOptions.defaults());
      requireWhole(saved.checkpoint());
      CheckpointFolder latest =
          CheckpointStore.list(GantrySession.shared(), root()).latest().orElseThrow();
      assertThat(latest).isEqualTo(saved.checkpoint());
      assertThat(latest.manifest().metrics()).containsExactly(Map.entry("loss", 1.0 / 7));
      assertThat(latest.manifest().state()).containsExactly(Map.entry("epoch", "3"));
      assertThat(latest.open("model").metadata()).containsEntry("note", "a \"quoted\" note");
      assertThat(latest.folder()).isDirectoryContaining("glob:**model-00001-of-*.safetensors");
    }
  }

  @Test
  void whatTheRetentionDoesNotWantGoes() {
    Retention retention =
        new Retention(2, 5, Optional.of(new Retention.Best("loss", 1, Retention.Goal.MAXIMIZE)));
    try (CheckpointStore store = open(retention)) {
      for (long step = 1; step <= 12; step++) {
        store.save(checkpoint(step), WriteOptions.defaults());
      }
      CheckpointListing listing = CheckpointStore.list(GantrySession.shared(), root());
      assertThat(steps(listing.checkpoints())).containsExactly(1L, 5L, 10L, 11L, 12L);
      listing.checkpoints().forEach(this::requireWhole);
    }
  }

  @Test
  void aStepThatIsSavedAgainIsReplaced() {
    try (CheckpointStore store = open(Retention.ALL)) {
      for (long step : new long[] {1, 2, 3, 2}) {
        store.save(checkpoint(step), WriteOptions.defaults());
      }
      CheckpointListing listing = CheckpointStore.list(GantrySession.shared(), root());
      assertThat(steps(listing.checkpoints())).containsExactly(1L, 3L, 2L);
      assertThat(listing.latest().orElseThrow().manifest().sequence()).isEqualTo(4);
      assertThat(root()).isDirectoryContaining("glob:**gantry-step-2-4");
      assertThat(root()).isDirectoryNotContaining("glob:**gantry-step-2");
    }
  }

  @Test
  void theLastFiniteCheckpointStaysAlsoIfItsStepIsSavedAgain() {
    try (CheckpointStore store = open(TestCheckpoints.last(1))) {
      for (long step : new long[] {1, 2}) {
        store.save(checkpoint(step), WriteOptions.defaults());
      }
      UnsavedCheckpoint spoilt = checkpoint(2);
      store.save(
          new UnsavedCheckpoint(2, spoilt.groups(), List.of(), Map.of(), Map.of(), Map.of(), false),
          WriteOptions.defaults());
      assertThat(CheckpointStore.list(session, root()).saves())
          .extracting(CheckpointFolder::step, CheckpointFolder::isFinite)
          .containsExactly(tuple(2L, true), tuple(2L, false));
      store.save(checkpoint(3), WriteOptions.defaults());
      assertThat(steps(CheckpointStore.list(session, root()).saves())).containsExactly(3L);
    }
  }

  @Test
  void aNameThatBeginsAsAnotherDoesIsAnotherCheckpoint() {
    try (CheckpointStore store = open(TestCheckpoints.last(1))) {
      for (long step : new long[] {10, 1}) {
        var _ = store.save(checkpoint(step), WriteOptions.defaults());
      }
      assertThat(steps(CheckpointStore.list(session, root()).saves())).containsExactly(1L);
    }
  }

  /// The store must not take the new checkpoint for the old one of its folder, which would go.
  @Test
  void aStepWhoseManifestFailedIsSavedAgain() {
    FaultyFileCalls faulty = new FaultyFileCalls(Libc.INSTANCE);
    try (GantrySession other = Sessions.over(faulty);
        CheckpointStore store = TestCheckpoints.open(other, root(), TestCheckpoints.last(1))) {
      var _ = store.save(TestCheckpoints.unsaved(1), WriteOptions.defaults());
      int renames = faulty.count(Function.RENAME);
      // The manifest is renamed last.
      faulty.at(Function.RENAME, 2 * renames, new Fails(Errno.EIO));
      assertThatThrownBy(() -> store.save(TestCheckpoints.unsaved(2), WriteOptions.defaults()))
          .hasMessageContaining("manifest.json");
      assertThat(steps(CheckpointStore.list(session, root()).saves())).containsExactly(1L);
      var _ = store.save(TestCheckpoints.unsaved(2), WriteOptions.defaults());
      assertThat(steps(CheckpointStore.list(session, root()).saves())).containsExactly(2L);
    }
  }

  /// The first checkpoint can never be removed.
  @Test
  void aCheckpointThatCannotBeRemovedHoldsUpNoOther() {
    FaultyFileCalls faulty = new FaultyFileCalls(Libc.INSTANCE);
    try (GantrySession other = Sessions.over(faulty)) {
      try (CheckpointStore store = TestCheckpoints.open(other, root(), TestCheckpoints.last(1))) {
        for (long step = 1; step <= 3; step++) {
          failNextRemoval(faulty);
          var _ = store.save(TestCheckpoints.unsaved(step), WriteOptions.defaults());
        }
        assertThat(steps(CheckpointStore.list(session, root()).saves())).containsExactly(1L, 3L);
      }
      try (CheckpointStore store = TestCheckpoints.open(other, root(), Retention.ALL)) {
        var _ = store.save(TestCheckpoints.unsaved(4), WriteOptions.defaults());
      }
      failNextRemoval(faulty);
      SavedCheckpoints.Pruned pruned =
          new SavedCheckpoints(other, Location.of(root())).prune(TestCheckpoints.last(1));
      assertThat(steps(pruned.removed())).containsExactly(3L);
      assertThat(pruned.failures())
          .singleElement()
          .asString()
          .contains("gantry-step-1/manifest.json", "EPERM");
      assertThat(steps(CheckpointStore.list(session, root()).saves())).containsExactly(1L, 4L);
    }
  }

  private static void failNextRemoval(FaultyFileCalls faulty) {
    faulty.at(Function.UNLINK, faulty.count(Function.UNLINK) + 1, new Fails(Errno.EPERM));
  }

  @Test
  void aSaveThatIsCancelledBeforeItsManifestIsWrittenLeavesNothing() {
    FaultyFileCalls faulty = new FaultyFileCalls(Libc.INSTANCE);
    Cancellation cancellation = new Cancellation();
    // All data are on the disk then.
    faulty.at(Function.RENAME, 1, new FaultyFileCalls.After(cancellation::cancel));
    try (GantrySession other = Sessions.over(faulty);
        CheckpointStore store = TestCheckpoints.open(other, root(), TestCheckpoints.last(1))) {
      WriteOptions cancelled = WriteOptions.defaults().withCancellation(cancellation);
      assertThatThrownBy(() -> store.save(TestCheckpoints.unsaved(1), cancelled))
          .hasMessageContaining("cancelled");
      assertThat(CheckpointStore.list(session, root()).saves()).isEmpty();
      assertThat(root()).isDirectoryNotContaining("glob:**gantry-step-*");
    }
  }

  /// A header or an index that can be parsed, and is not the one that was saved.
  @ParameterizedTest
  @ValueSource(strings = {"model-00001-of-00002.safetensors", "model.safetensors.index.json"})
  void anotherListOfTensorsIsNotTheSavedOne(String name) throws IOException {
    try (CheckpointStore store = TestCheckpoints.open(session, root(), Retention.ALL)) {
      CheckpointFolder saved =
          store.save(TestCheckpoints.unsaved(1), WriteOptions.defaults()).checkpoint();
      Path file = saved.folder().resolve(name);
      String text = Files.readString(file, StandardCharsets.ISO_8859_1);
      String changed =
          name.endsWith(".json")
              ? text.replaceFirst("\n", " ")
              : text.replaceFirst("a test", "A test");
      assertThat(changed).isNotEqualTo(text);
      Files.writeString(file, changed, StandardCharsets.ISO_8859_1);
      assertThatThrownBy(() -> saved.open("model"))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("checksum-mismatch: the list of tensors has CRC32C");
      assertThat(damage(saved))
          .singleElement()
          .asString()
          .contains("the list of tensors has CRC32C");
      if (!name.endsWith(".json")) {
        byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
        ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        bytes[Long.BYTES + (int) buffer.getLong()] ^= 1;
        Files.write(file, bytes);
        assertThat(damage(saved)).singleElement().asString().contains("tensor 'first' has CRC32C");
      }
      Files.delete(file);
      assertThat(damage(saved)).singleElement().asString().contains("missing-file");
      Files.delete(StoreFolder.manifest(saved.folder()));
      assertThat(CheckpointCheck.damage(session, saved, _ -> {})).isEmpty();
    }
  }

  private List<String> damage(CheckpointFolder saved) {
    return CheckpointCheck.damage(session, saved, _ -> {}).orElseThrow().stream()
        .map(Throwable::getMessage)
        .toList();
  }

  @Test
  void oneSaverAtATime() {
    CheckpointStore first = open(Retention.ALL);
    assertThatThrownBy(() -> open(Retention.ALL))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("another saver");
    first.close();
    open(Retention.ALL).close();
  }

  /// Without the refusal the saver would look for the file for ever.
  @Test
  @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void aLockThatLeadsNowhereIsAnError() throws IOException {
    Files.createDirectories(root());
    Path lock = root().resolve(".gantry.lock");
    Files.createSymbolicLink(lock, parent.resolve("gone/lock"));
    assertThatThrownBy(() -> open(Retention.ALL))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining(lock.toString());
    Files.delete(lock);
    open(Retention.ALL).close();
  }

  @Test
  void aCheckTellsHowManyBytesItHasRead() {
    try (CheckpointStore store = open(Retention.ALL)) {
      CheckpointFolder saved = store.save(checkpoint(1), WriteOptions.defaults()).checkpoint();
      List<Long> read = new ArrayList<>();
      assertThat(CheckpointCheck.damage(session, saved, read::add).orElseThrow()).isEmpty();
      assertThat(read)
          .containsExactlyElementsOf(
              saved.manifest().files().stream().map(Manifest.FileEntry::size).toList());
    }
  }

  /// A second saver in this process must not release the first saver's lock when it is refused.
  @Test
  void oneSaverOfAllProcesses() {
    CheckpointStore first = open(Retention.ALL);
    assertThatThrownBy(() -> open(Retention.ALL)).isInstanceOf(MisuseException.class);
    try (SavingChild child = SavingChild.holding(root())) {
      assertThat(child.line()).startsWith(SavingChild.REFUSED + "another saver");
    }
    first.close();
    try (SavingChild child = SavingChild.holding(root())) {
      assertThat(child.line()).isEqualTo(SavingChild.READY);
      assertThatThrownBy(() -> open(Retention.ALL)).isInstanceOf(MisuseException.class);
      child.kill();
    }
    open(Retention.ALL).close();
  }

  @Test
  void oneSaverWhateverThePathToTheFolder() throws IOException {
    try (CheckpointStore _ = open(Retention.ALL)) {
      Path link = Files.createSymbolicLink(parent.resolve("link"), root());
      assertThatThrownBy(() -> CheckpointStore.open(session, link, Retention.ALL, 50_000))
          .isInstanceOf(MisuseException.class);
    }
  }

  @Test
  void aClosedStoreSavesNothing() {
    CheckpointStore store = open(Retention.ALL);
    store.close();
    store.close();
    assertThatThrownBy(() -> store.save(checkpoint(1), WriteOptions.defaults()))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("closed");
    assertThat(CheckpointStore.list(GantrySession.shared(), root()).checkpoints()).isEmpty();
  }

  /// A saver removes no foreign file, neither when it opens nor when it removes a checkpoint
  /// around the file.
  @Test
  void filesOfOthersStay() throws IOException {
    Path notes = Files.createDirectories(root().resolve("gantry-step-7")).resolve("notes.txt");
    Files.writeString(notes, "mine");
    Path folder = Files.createDirectories(root().resolve("gantry-step-8/model.safetensors"));
    Path elsewhere = Files.createDirectories(root().resolve("steps")).resolve("model.safetensors");
    Files.writeString(elsewhere, "mine");
    Path report = root().resolve("gantry-step-1/report.txt");
    try (CheckpointStore store = open(new Retention(1, 0, Optional.empty()))) {
      store.save(checkpoint(1), WriteOptions.defaults());
      Files.writeString(report, "mine");
      store.save(checkpoint(7), WriteOptions.defaults());
    }
    open(Retention.ALL).close();
    assertThat(notes).hasContent("mine");
    assertThat(elsewhere).hasContent("mine");
    assertThat(folder).isEmptyDirectory();
    assertThat(report.getParent()).isDirectoryContaining("glob:**report.txt");
    try (Stream<Path> left = Files.list(report.getParent())) {
      assertThat(left).containsExactly(report);
    }
    assertThat(steps(CheckpointStore.list(GantrySession.shared(), root()).checkpoints()))
        .containsExactly(7L);
  }

  /// A link with the name of a saver's file is removed, but its target stays.
  @Test
  void linksAreNotFollowed() throws IOException {
    Path precious = Files.writeString(parent.resolve("precious"), "mine");
    Path models = Files.createDirectory(parent.resolve("models"));
    Path model = Files.writeString(models.resolve("model.safetensors"), "mine");
    Path unfinished = Files.createDirectories(root().resolve("gantry-step-7"));
    Files.createSymbolicLink(unfinished.resolve("model.safetensors"), precious);
    Files.createSymbolicLink(unfinished.resolve("optimizer.safetensors"), models);
    Path linked = Files.createSymbolicLink(root().resolve("gantry-step-8"), models);
    open(Retention.ALL).close();
    assertThat(unfinished).doesNotExist();
    assertThat(linked).isSymbolicLink();
    assertThat(precious).hasContent("mine");
    assertThat(model).hasContent("mine");
  }

  @Test
  void allNamesOfAPlanAreRecognisedAsASavers() throws IOException {
    Path unfinished = Files.createDirectories(root().resolve("gantry-step-7"));
    for (NewFile file : SavePlan.of(checkpoint(7), 1, SaveHistory.NONE, 50_000).files()) {
      Files.write(unfinished.resolve(file.file()), new byte[1]);
    }
    open(Retention.ALL).close();
    assertThat(unfinished).doesNotExist();
  }

  @Test
  void aManifestThatIsALinkToNowhereIsNoLeftover() throws IOException {
    Path folder = Files.createDirectories(root().resolve("gantry-step-7"));
    Path model = Files.writeString(folder.resolve("model.safetensors"), "mine");
    Files.createSymbolicLink(folder.resolve("manifest.json"), parent.resolve("unmounted"));
    open(Retention.ALL).close();
    assertThat(model).hasContent("mine");
    assertThat(CheckpointStore.list(GantrySession.shared(), root()).checkpoints()).isEmpty();
  }

  /// The kernel releases the lock of a file when the file's writer ends.
  @Test
  void theFilesOfALivingWriterStayAndThoseOfAKilledOneGo() throws IOException {
    Path unfinished = Files.createDirectories(root().resolve("gantry-step-7"));
    String name = ".gantry-0123456789abcdef.held.tmp";
    Path killed = root().resolve(name);
    Path alsoKilled = unfinished.resolve(name);
    // A process that may open no more files writes without locks.
    Path unknown = Files.createFile(root().resolve(".gantry-0123456789abcdef.tmp"));
    List<Path> living = List.of(root().resolve("export.bin"), unfinished.resolve("notes.bin"));
    try (AppendedFile first = session.append(living.getFirst());
        AppendedFile second = session.append(living.getLast())) {
      Files.createFile(killed);
      Files.createFile(alsoKilled);
      open(Retention.ALL).close();
      AppendedFile.commit(List.of(first, second));
    }
    assertThat(living).allSatisfy(file -> assertThat(file).exists());
    assertThat(killed).doesNotExist();
    assertThat(alsoKilled).doesNotExist();
    assertThat(unknown).exists();
  }

  @Test
  void textsThatCouldNotBeReadAgain() {
    String half = "\ud800";
    for (Map<String, String> bad : List.of(Map.of(half, ""), Map.of("", half))) {
      assertThatThrownBy(() -> new UnsavedCheckpoint(1, groups(), bad, Map.of(), Map.of()))
          .isInstanceOf(MisuseException.class);
      assertThatThrownBy(() -> new UnsavedCheckpoint(1, groups(), Map.of(), Map.of(), bad))
          .isInstanceOf(MisuseException.class);
    }
    String longest = "x".repeat(JsonReader.MAX_STRING_CHARACTERS);
    assertThatThrownBy(
            () -> new UnsavedCheckpoint(1, groups(), Map.of("", longest + "x"), Map.of(), Map.of()))
        .isInstanceOf(MisuseException.class);
    try (CheckpointStore store = open(Retention.ALL)) {
      store.save(
          new UnsavedCheckpoint(1, groups(), Map.of("", longest), Map.of(), Map.of()),
          WriteOptions.defaults());
    }
    assertThat(
            CheckpointStore.list(GantrySession.shared(), root())
                .latest()
                .orElseThrow()
                .manifest()
                .state())
        .containsExactly(Map.entry("", longest));
  }

  private static SequencedMap<String, List<NewTensor>> groups() {
    return new LinkedHashMap<>(Map.of("model", List.of()));
  }

  @Test
  void aSaverThatGoesOnAfterAnotherHasTheLatestSaveOfTheHistory() {
    SaveHistory both = SaveHistory.NONE.then("a", 1).then("b", 2);
    SaveHistory longer = both.then("a", 3);
    assertThat(longer.contains(both)).isTrue();
    assertThat(both.contains(longer)).isFalse();
    assertThat(both.then("b", 4).partedFrom(longer)).isTrue();
  }
}
