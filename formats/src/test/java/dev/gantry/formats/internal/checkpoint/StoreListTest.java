// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.checkpoint.TestCheckpoints.Name;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.SequencedMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The checkpoints that a store and its readers find, and the files in which they find them.
@ExtendWith(NoLeaks.class)
class StoreListTest {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  @TempDir(factory = MemoryFolder.class)
  Path parent;

  private final GantrySession session = GantrySession.open();

  @AfterEach
  void close() {
    session.close();
  }

  private Path root() {
    return parent.resolve("run");
  }

  private CheckpointStore open(Retention retention) {
    return TestCheckpoints.open(session, root(), retention);
  }

  private static void save(CheckpointStore store, long... steps) {
    for (long step : steps) {
      store.save(TestCheckpoints.unsaved(step), TestCheckpoints.options());
    }
  }

  private Path manifest(long step) {
    return StoreFolder.manifest(root().resolve("gantry-step-" + step));
  }

  private List<Path> doubtful() {
    return CheckpointStore.list(GantrySession.shared(), root()).doubtful().stream()
        .map(damage -> damage.file().path())
        .toList();
  }

  /// The save would fail if it read these manifests, which are no longer JSON.
  @Test
  void aSaveReadsNoManifestThatIsThereAlready() throws IOException {
    try (CheckpointStore store = open(TestCheckpoints.last(3))) {
      save(store, 1, 2, 3);
      for (long step = 1; step <= 3; step++) {
        Files.writeString(manifest(step), "no JSON");
      }
      save(store, 4, 5);
    }
    assertThat(root())
        .isDirectoryNotContaining("glob:**gantry-step-1")
        .isDirectoryNotContaining("glob:**gantry-step-2")
        .isDirectoryContaining("glob:**gantry-step-3");
    assertThat(TestCheckpoints.steps(root())).containsExactly(4L, 5L);
  }

  private static UnsavedCheckpoint large(long step, int tensors) {
    List<NewTensor> model = new ArrayList<>();
    for (int i = 0; i < tensors; i++) {
      model.add(
          new NewTensor(
              "encoder.layer." + i,
              DType.U8,
              TensorShape.of(1),
              new Memory.OnHost(MemorySegment.ofArray(new byte[1]))));
    }
    SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
    groups.put("model", model);
    return new UnsavedCheckpoint(step, groups, Map.of(), Map.of("loss", 1.0), Map.of());
  }

  /// A manifest takes some hundred bytes for each tensor.
  @Test
  void aSaveTakesNoMoreMemoryTheMoreCheckpointsThereAre() {
    long few = 0;
    long many = 0;
    try (CheckpointStore store = CheckpointStore.open(session, root(), Retention.ALL, 1 << 20)) {
      for (int step = 1; step <= 30; step++) {
        long before = THREADS.getTotalThreadAllocatedBytes();
        store.save(large(step, 3000), TestCheckpoints.options().withRequestBytes(1 << 20));
        many = THREADS.getTotalThreadAllocatedBytes() - before;
        few = step == 5 ? many : few;
      }
    }
    assertThat(many).isLessThan(few + (2 << 20));
    List<CheckpointFolder> listed =
        CheckpointStore.list(GantrySession.shared(), root()).checkpoints();
    assertThat(listed).hasSize(30);
    assertThat(listed.getLast().manifest().files().getLast().tensors()).hasSize(3000);
  }

  @Test
  void whatIsRemovedByHandDoesNotCountAsKept() {
    try (CheckpointStore store = open(TestCheckpoints.last(2))) {
      save(store, 1, 2);
      TestCheckpoints.delete(manifest(2).getParent());
      save(store, 3);
    }
    assertThat(TestCheckpoints.steps(root())).containsExactly(1L, 3L);
  }

  /// A link to itself cannot be opened, so the manifest may still be intact.
  @Test
  void aManifestThatCannotBeOpenedIsAnErrorAndNotDamage() throws IOException {
    try (CheckpointStore store = open(Retention.ALL)) {
      save(store, 1, 2);
    }
    Path aside = Files.move(manifest(2), parent.resolve("aside"));
    Files.createSymbolicLink(manifest(2), manifest(2));
    assertThatThrownBy(() -> CheckpointStore.list(GantrySession.shared(), root()))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining(manifest(2).toString())
        .hasMessageContaining("ELOOP");
    // Otherwise the third checkpoint would get the number of the second save.
    assertThatThrownBy(() -> open(Retention.ALL)).isInstanceOf(TransferException.class);
    Files.delete(manifest(2));
    Files.move(aside, manifest(2));
    try (CheckpointStore store = open(Retention.ALL)) {
      save(store, 3);
    }
    assertThat(CheckpointStore.list(GantrySession.shared(), root()).checkpoints())
        .extracting(CheckpointFolder::sequence)
        .containsExactly(1L, 2L, 3L);
  }

  @Test
  void aFolderInTheManifestsPlaceIsDamage() throws IOException {
    try (CheckpointStore store = open(Retention.ALL)) {
      save(store, 1, 2);
    }
    Files.delete(manifest(1));
    Files.createDirectory(manifest(1));
    assertThat(CheckpointStore.list(GantrySession.shared(), root()).damaged())
        .singleElement()
        .returns("not-a-regular-file", MalformedFileException::kind);
    assertThat(doubtful()).isEmpty();
  }

  /// The folder's name gives the step if nothing of the manifest is left.
  @ParameterizedTest
  @ValueSource(doubles = {0, 0.01, 0.5, 0.99})
  void aDamagedManifestThatIsOlderThanAWholeOneIsNotDoubtful(double left) throws IOException {
    try (CheckpointStore store = open(Retention.ALL)) {
      save(store, 1, 2, 3);
    }
    byte[] bytes = Files.readAllBytes(manifest(1));
    Files.write(manifest(1), Arrays.copyOf(bytes, (int) (left * bytes.length)));
    assertThat(CheckpointStore.list(GantrySession.shared(), root()).damaged()).hasSize(1);
    assertThat(doubtful()).isEmpty();
    Files.write(manifest(3), Arrays.copyOf(bytes, (int) (left * bytes.length)));
    assertThat(doubtful()).containsExactly(manifest(3));
  }

  /// The training saved steps 60 to 100, and again from 70 on. The rest of the damaged manifest
  /// shows that its save is the latest.
  @Test
  void aTrainingThatWentBackIsSeenByTheNumbersOfItsSaves() throws IOException {
    try (CheckpointStore store = open(Retention.ALL)) {
      save(store, 60, 100, 70);
    }
    byte[] bytes = Files.readAllBytes(manifest(70));
    Files.write(manifest(70), Arrays.copyOf(bytes, bytes.length / 2));
    assertThat(doubtful()).containsExactly(manifest(70));
    try (CheckpointStore store = open(Retention.ALL)) {
      save(store, 80);
    }
    assertThat(doubtful()).isEmpty();
    assertThat(
            CheckpointStore.list(GantrySession.shared(), root()).latest().orElseThrow().sequence())
        .isEqualTo(4);
  }

  @Test
  void aManifestIsReadWhenItIsAskedForAndMustBeOfTheSameSave() throws IOException {
    try (CheckpointStore store = open(Retention.ALL)) {
      save(store, 1, 2);
    }
    CheckpointListing listing = CheckpointStore.list(GantrySession.shared(), root());
    CheckpointFolder first = listing.checkpoints().getFirst();
    assertThat(Name.of(first).step()).isEqualTo(1);
    CheckpointFolder second = listing.checkpoints().getLast();
    Files.copy(manifest(1), manifest(2), StandardCopyOption.REPLACE_EXISTING);
    assertThatThrownBy(second::manifest)
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("changed-manifest");
    // The step is saved again after it was removed, so another save has the folder's name.
    TestCheckpoints.delete(manifest(2).getParent());
    try (CheckpointStore store = open(Retention.ALL)) {
      save(store, 2);
    }
    assertThatThrownBy(second.afresh()::manifest)
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("changed-manifest");
  }

  @Test
  void aFolderWithoutAManifestIsUnfinished() throws IOException {
    try (CheckpointStore store = open(Retention.ALL)) {
      save(store, 1, 2);
      Files.delete(manifest(2));
      CheckpointListing found = CheckpointStore.list(session, root());
      assertThat(found.saves()).hasSize(1);
      assertThat(found.unfinished()).containsExactly("gantry-step-2");
    }
  }

  private static CheckpointFolder saved(long step, long sequence) {
    SequencedMap<String, String> none = Collections.emptySortedMap();
    Manifest head =
        new Manifest(
            step,
            sequence,
            SaveHistory.NONE,
            true,
            none,
            Collections.emptySortedMap(),
            none,
            List.of());
    return new CheckpointFolder(
        GantrySession.shared(), Path.of("gantry-step-" + step + "-" + sequence), head);
  }

  @Test
  void aStepThatWasSavedAgainIsListedWhereItWasSavedLast() {
    List<CheckpointFolder> saves = List.of(saved(1, 1), saved(2, 2), saved(1, 3));
    assertThat(new CheckpointListing(saves, List.of(), List.of()).checkpoints())
        .containsExactly(saves.get(1), saves.get(2));
  }

  @Test
  void aDamagedCheckpointIsOlderOnlyIfItsNumberOrItsStepIsLower() {
    MalformedFileException reason =
        new MalformedFileException(Path.of("manifest.json"), 0, "kind", "detail");
    for (long number = 2; number <= 4; number++) {
      for (boolean byStep : new boolean[] {false, true}) {
        OptionalLong known = OptionalLong.of(number);
        var damaged =
            new CheckpointListing.Damaged(
                reason, byStep ? known : OptionalLong.of(9), byStep ? OptionalLong.empty() : known);
        CheckpointListing listing =
            new CheckpointListing(List.of(saved(3, 3)), List.of(damaged), List.of());
        assertThat(listing.doubtful().isEmpty()).as("%s", damaged).isEqualTo(number < 3);
      }
    }
  }

  @Test
  void aFolderIsLookedAtUntilTwoLooksAreEqual() {
    Iterator<String> looks = List.of("a", "b", "b").iterator();
    assertThat(CheckpointListing.<String, String>settled(looks::next, look -> look)).isEqualTo("b");
    TransferException gone = new TransferException("open", "a", Errno.failure(Errno.ENOENT.code()));
    assertThatThrownBy(() ->
            CheckpointListing.settled(
                () -> "a",
                _ -> {
                  throw gone;
                }))
        .isSameAs(gone);
  }

  @Test
  void oldCheckpointsThatCannotBeRemovedAreNoFailureOfTheSave() {
    FaultyFileCalls faulty = new FaultyFileCalls(Libc.INSTANCE);
    try (GantrySession other = Sessions.over(faulty);
        CheckpointStore store =
            TestCheckpoints.open(other, parent.resolve("run"), TestCheckpoints.last(1))) {
      save(store, 1);
      faulty.at(
          FaultyFileCalls.Function.UNLINK,
          faulty.count(FaultyFileCalls.Function.UNLINK) + 1,
          new FaultyFileCalls.Fails(Errno.EROFS));
      save(store, 2);
      assertThat(CheckpointStore.list(other, parent.resolve("run")).saves()).hasSize(2);
      save(store, 3);
      assertThat(CheckpointStore.list(other, parent.resolve("run")).saves()).hasSize(1);
    }
  }
}
