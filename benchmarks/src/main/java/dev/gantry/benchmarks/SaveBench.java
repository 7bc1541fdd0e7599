// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.Folders;
import dev.gantry.benchmarks.harness.HostCeilings;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.core.Device;
import dev.gantry.core.Source;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.checkpoint.UnsavedCheckpoint;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.Set;

/// Measures how fast checkpoints are saved durably from a device's memory to the disk, in turns
/// with plain writes to the disk: `save DEVICE FOLDER FILE…`. The tensors of each file are loaded
/// once and saved into checkpoint stores in `FOLDER`.
///
/// The clock runs from the call to the durable manifest. The first checkpoint of each store is
/// read back, and its tensors are compared with the loaded ones by checksum. Checkpoints are
/// removed while the clock is stopped, because some disks take seconds to remove them.
public final class SaveBench {
  private static final long SHARD_BYTES = 5_000_000_000L;
  private static final int TURNS = 7;
  private static final int WRITERS = 4;

  private final GantrySession session;
  private final Path folder;
  private final List<NewTensor> tensors;
  private final long bytes;
  private final Set<String> checked = new HashSet<>();
  private long step;

  private SaveBench(GantrySession session, Path folder, List<NewTensor> tensors) {
    this.session = session;
    this.folder = folder;
    this.tensors = tensors;
    this.bytes = tensors.stream().mapToLong(tensor -> tensor.source().length()).sum();
  }

  public static void main(String[] arguments) throws Exception {
    Device device = Device.parse(arguments[0]);
    Path folder = Files.createDirectories(Path.of(arguments[1]));
    for (String file : List.of(arguments).subList(2, arguments.length)) {
      try (GantrySession session = GantrySession.open()) {
        List<StoredTensor> infos =
            List.copyOf(SafetensorsOpener.open(session, Path.of(file)).tensors().values());
        try (Loaded loaded =
            session.load(
                infos.stream().map(LoadedTensors::wanted).toList(),
                device,
                TransferOptions.defaults())) {
          List<NewTensor> tensors = new ArrayList<>(infos.size());
          for (int i = 0; i < infos.size(); i++) {
            StoredTensor info = infos.get(i);
            tensors.add(
                new NewTensor(
                    info.name(), info.dtype(), info.shape(), loaded.regions().get(i).source()));
          }
          new SaveBench(session, folder, tensors).run(file);
        }
      }
    }
  }

  private void run(String file) throws Exception {
    WriteOptions options = WriteOptions.defaults();
    String throughCache = "gantry, through the page cache";
    try (CheckpointStore direct = store("gantry");
        CheckpointStore cached = store(throughCache)) {
      new Comparison("saves of " + file, bytes)
          .before(() -> new ProcessBuilder("sync").start().waitFor())
          .add(HostCeilings.directWrite(folder.resolve("ceiling"), WRITERS, bytes))
          .addTimed("gantry", () -> save("gantry", direct, options))
          .addTimed(throughCache, () -> save(throughCache, cached, options.withPageCache(true)))
          .print(TURNS);
    }
  }

  private CheckpointStore store(String name) {
    return CheckpointStore.open(session, folder.resolve(name), Retention.ALL, SHARD_BYTES);
  }

  /// Saves a checkpoint, checks it if it is the store's first one, and removes it.
  ///
  /// @param name the name of the store's folder
  /// @return the seconds until the checkpoint was durable
  private double save(String name, CheckpointStore store, WriteOptions options) throws Exception {
    SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
    groups.put("model", tensors);
    UnsavedCheckpoint checkpoint =
        new UnsavedCheckpoint(++step, groups, Map.of(), Map.of(), Map.of());
    double seconds =
        Contender.seconds(() -> {
          var _ = store.save(checkpoint, options);
        });
    CheckpointFolder saved =
        CheckpointStore.list(session, folder.resolve(name)).latest().orElseThrow();
    if (checked.add(name)) {
      check(saved);
    }
    Folders.remove(saved.folder());
    return seconds;
  }

  private void check(CheckpointFolder checkpoint) {
    Map<String, NewTensor> originals = new HashMap<>();
    tensors.forEach(tensor -> originals.put(tensor.name(), tensor));
    for (StoredTensor info : checkpoint.open("model").tensors().values()) {
      int sum = session.checksum(new Source.FilePart(info.extent()));
      checkpoint.check(info, sum);
      NewTensor original = Objects.requireNonNull(originals.get(info.name()));
      if (sum != session.checksum(original.source())) {
        throw new WrongBytesException("other bytes were saved of " + info);
      }
    }
  }
}
