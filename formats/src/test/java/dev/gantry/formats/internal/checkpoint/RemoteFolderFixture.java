// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// A folder of checkpoints on this machine, and its copy in a store in memory.
@ExtendWith(NoLeaks.class)
abstract class RemoteFolderFixture {
  static final Retention TWO = new Retention(2, 0, Optional.empty());

  @TempDir Path folder;
  final GantrySession session = GantrySession.open();
  final String bucket = UUID.randomUUID().toString();
  final Location remote = Location.of("memory://" + bucket + "/run");

  @AfterEach
  void close() {
    MemoryStore.beforeEachWrite(null);
    session.close();
  }

  CheckpointStore open(String name, Retention local, Retention there) {
    return CheckpointStore.open(
        session,
        folder.resolve(name),
        local,
        50_000,
        Optional.of(new CheckpointStore.Remote(remote, there)));
  }

  static UnsavedCheckpoint checkpoint(long step) {
    byte[] bytes = TestFiles.bytes(step, 70_000);
    SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
    groups.put(
        "model",
        List.of(tensor("first", bytes), tensor("second", TestFiles.bytes(step + 1000, 30_000))));
    return new UnsavedCheckpoint(step, groups, Map.of(), Map.of("loss", 1.0 / step), Map.of());
  }

  static NewTensor tensor(String name, byte[] bytes) {
    return new NewTensor(
        name,
        DType.U8,
        TensorShape.of(bytes.length),
        new Memory.OnHost(MemorySegment.ofArray(bytes)));
  }

  static void save(CheckpointStore store, long step) {
    var _ = store.save(checkpoint(step), WriteOptions.defaults());
  }

  /// Returns the steps of the complete checkpoints in the other store, as a new saver finds them.
  List<Long> there() {
    StoreFolder fresh = new StoreFolder(session, folder.resolve("look"));
    fresh.create();
    return RemoteFolder.open(session, remote, fresh, List.of(), Retention.ALL, "0123456789abcdef")
        .checkpoints()
        .stream()
        .map(CheckpointFolder::step)
        .toList();
  }

  List<Long> here(String name) {
    return CheckpointStore.list(GantrySession.shared(), folder.resolve(name)).checkpoints().stream()
        .map(CheckpointFolder::step)
        .toList();
  }

  /// Requires that all tensors have the values of the checkpoint's step.
  void requireWhole(CheckpointFolder stored) {
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

  void requireFetchable(String name, long step) {
    try (CheckpointStore store = open(name, Retention.ALL, Retention.ALL)) {
      store.fetchLatest(false);
      CheckpointFolder latest =
          CheckpointStore.list(GantrySession.shared(), folder.resolve(name)).latest().orElseThrow();
      assertThat(latest.step()).isEqualTo(step);
      requireWhole(latest);
    }
  }

  static NewFile file(String name, byte[] bytes) {
    return new NewFile(Path.of(name), List.of(new Memory.OnHost(MemorySegment.ofArray(bytes))));
  }

  CheckpointStore open(String name, String place) {
    return CheckpointStore.open(
        session,
        folder.resolve(name),
        Retention.ALL,
        50_000,
        Optional.of(
            new CheckpointStore.Remote(
                Location.of("memory://" + bucket + "/" + place), Retention.ALL)));
  }
}
