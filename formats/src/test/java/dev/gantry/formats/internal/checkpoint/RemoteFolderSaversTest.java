// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.testing.MemoryStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/// Savers that follow one another in a remote folder, or end in the middle of an upload.
class RemoteFolderSaversTest extends RemoteFolderFixture {
  /// The writes of a saver that finds all but the second file of a checkpoint there.
  private static final String[] SECOND_FILE_ONLY = {
    "upload gantry-saver", "upload model-00002-of-00002.safetensors", "upload manifest.json"
  };

  /// The test looks as if the process had been killed before the upload of the last of three
  /// files.
  @Test
  void theNextSaverSendsOnlyTheFilesThatAreMissing() {
    List<String> first = new CopyOnWriteArrayList<>();
    CheckpointStore store = open("a", Retention.ALL, Retention.ALL);
    refuseSecondFiles(first);
    save(store, 1);
    assertThatThrownBy(store::close).hasMessageContaining("slow down");
    assertThat(first)
        .containsExactlyInAnyOrder(
            "upload model.safetensors.index.json", "upload model-00001-of-00002.safetensors");
    assertThat(writesOfTheNextSaver(Retention.ALL)).containsExactly(SECOND_FILE_ONLY);
    requireFetchable("b", 1);
  }

  /// The upload of the first checkpoint fails in the middle, and the second one is uploaded.
  @Test
  void theNextSaverUploadsAlsoWhatIsOlderThanTheLastCopy() throws IOException {
    CheckpointStore store = open("a", Retention.ALL, Retention.ALL);
    refuseSecondFiles(new CopyOnWriteArrayList<>());
    save(store, 1);
    assertThatThrownBy(store::awaitUploads).hasMessageContaining("slow down");
    MemoryStore.beforeEachWrite(null);
    Path file = folder.resolve("a/gantry-step-1/model-00002-of-00002.safetensors");
    Path aside = folder.resolve("aside");
    Files.move(file, aside);
    save(store, 2);
    assertThatThrownBy(store::close).hasMessageContaining("gantry-step-1");
    Files.move(aside, file);
    assertThat(RemoteScan.of(session, (Location.Remote) remote).checkpoints())
        .extracting(CheckpointFolder::step)
        .containsExactly(2L);
    assertThat(writesOfTheNextSaver(Retention.ALL)).containsExactly(SECOND_FILE_ONLY);
    assertThat(there()).containsExactly(1L, 2L);
  }

  @Test
  void theNextSaverUploadsOnlyWhatTheRulesKeep() {
    CheckpointStore store = open("a", Retention.ALL, Retention.ALL);
    refuseSecondFiles(new CopyOnWriteArrayList<>());
    for (long step = 1; step <= 3; step++) {
      save(store, step);
    }
    assertThatThrownBy(store::close).hasMessageContaining("slow down");
    assertThat(writesOfTheNextSaver(TWO))
        .filteredOn(call -> call.equals("upload manifest.json"))
        .hasSize(2);
    assertThat(there()).containsExactly(2L, 3L);
  }

  /// @param remote the rules for copies
  private List<String> writesOfTheNextSaver(Retention remote) {
    List<String> writes = new CopyOnWriteArrayList<>();
    MemoryStore.beforeEachWrite(writes::add);
    open("a", Retention.ALL, remote).close();
    MemoryStore.beforeEachWrite(null);
    return writes;
  }

  /// @param sent takes the calls that are not refused
  private static void refuseSecondFiles(List<String> sent) {
    MemoryStore.beforeEachWrite(call -> {
      if (call.contains("00002-of")) {
        throw new TransferException("upload", "x", new Failure.Remote(503, "slow down"));
      }
      sent.add(call);
    });
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

  /// Another saver takes the folder while this one lists it, and has uploaded its first file.
  @Test
  void aSaverThatHasLostTheFolderRemovesNothing() {
    try (CheckpointStore store = open("a", Retention.ALL, Retention.ALL)) {
      save(store, 1);
    }
    String uploaded = "gantry-step-9-9-0123456789abcdef/model.safetensors";
    MemoryStore.beforeEachOpen(name -> {
      if (name.equals(StoreFolder.MANIFEST)) {
        MemoryStore.beforeEachOpen(null);
        MemoryStore.put(
            bucket + "/run/gantry-saver", "0123456789abcdef".getBytes(StandardCharsets.UTF_8));
        MemoryStore.put(bucket + "/run/" + uploaded, new byte[5]);
      }
    });
    try {
      assertThatThrownBy(() -> open("b", Retention.ALL, Retention.ALL))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("another saver has taken this folder");
    } finally {
      MemoryStore.beforeEachOpen(null);
    }
    assertThat(MemoryStore.names(bucket + "/run")).contains(uploaded);
  }

  /// The saver that had the folder before ends its last upload meanwhile.
  @Test
  void aManifestThatComesWhileItsFilesAreRemovedIsRemovedToo() {
    String left = "gantry-step-9-9-0123456789abcdef/";
    MemoryStore.put(bucket + "/run/" + left + "model.safetensors", new byte[5]);
    MemoryStore.beforeEachWrite(call -> {
      if (call.startsWith("remove")) {
        MemoryStore.beforeEachWrite(null);
        MemoryStore.put(bucket + "/run/" + left + StoreFolder.MANIFEST, new byte[3]);
      }
    });
    open("a", Retention.ALL, Retention.ALL).close();
    assertThat(MemoryStore.names(bucket + "/run")).noneMatch(name -> name.startsWith(left));
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
}
