// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.HostCeilings;
import dev.gantry.benchmarks.harness.LinkCeiling;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.core.Device;
import dev.gantry.core.Source;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.checkpoint.SaveQueue;
import dev.gantry.formats.internal.checkpoint.UnsavedCheckpoint;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.StoredTensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

/// Measures how fast checkpoints are saved durably from a device's memory to the disk, in turns with plain
/// writes of the disk, and how long a save stops its caller: `save DEVICE FOLDER FILE…`. Each file's
/// tensors are loaded once and saved into folders of checkpoints there.
///
/// A save counts from the call until the manifest is durable; a stall, from the call until the snapshot is
/// taken. The first checkpoint of each way is read back, and all of its checksums compared. Checkpoints are
/// removed while the clock is stopped, since some disks take seconds for that.
public final class SaveBench {
  private static final long SHARD_BYTES = 5_000_000_000L;
  private static final int TURNS = 7;
  private static final int WRITERS = 4;

  private final GantrySession session;
  private final Path folder;
  private final List<NewTensor> tensors;
  private final long bytes;

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
          new SaveBench(session, folder, tensors).run(file, device);
        }
      }
    }
  }

  private void run(String file, Device device) throws Exception {
    WriteOptions options = WriteOptions.defaults();
    print(
        "saves of " + file,
        bytes,
        HostCeilings.directWrite(folder.resolve("ceiling"), WRITERS, bytes),
        new Save("gantry", options),
        new Save("gantry, through the page cache", options.withPageCache(true)));
    SnapshotLimits onDevice = new SnapshotLimits(Long.MAX_VALUE, Long.MAX_VALUE);
    if (device instanceof Device.Cuda cuda) {
      print("link", LinkCeiling.BYTES, LinkCeiling.of(cuda, false));
      print(
          "stalls of saves of " + file,
          bytes,
          new Stall("snapshot in memory of the CPU", SnapshotLimits.DEFAULT, options),
          new Stall("snapshot on the device", onDevice, options));
      // A snapshot's blocks are aligned as the file's, so cuFile can write them as they are.
      print(
          "stalls of saves of " + file + " by cuFile",
          bytes,
          new Stall("snapshot on the device", onDevice, options.withTransport(Transport.COMPAT)));
    } else {
      print(
          "stalls of saves of " + file,
          bytes,
          new Stall("snapshot in memory of the CPU", SnapshotLimits.DEFAULT, options));
    }
  }

  private static void print(String title, long bytes, Contender... contenders) throws Exception {
    try {
      new Comparison(title, bytes)
          .before(() -> new ProcessBuilder("sync").start().waitFor())
          .addAll(List.of(contenders))
          .print(TURNS);
    } catch (IllegalStateException e) {
      System.out.println(e.getMessage());
    }
  }

  /// A contender that saves into its own folder.
  private class Save implements Contender {
    private final String name;
    private final WriteOptions options;
    final CheckpointStore store;
    private boolean checked;
    private long step;

    Save(String name, WriteOptions options) {
      this.name = name;
      this.options = options;
      store = CheckpointStore.open(session, folder.resolve(name), Retention.ALL, SHARD_BYTES);
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public double run() throws Exception {
      double seconds = save(next());
      CheckpointFolder saved =
          CheckpointStore.list(session, folder.resolve(name)).latest().orElseThrow();
      if (!checked) {
        check(saved);
        checked = true;
      }
      remove(saved.folder());
      return seconds;
    }

    /// @return the seconds that count; the checkpoint is on the disk when this returns
    double save(UnsavedCheckpoint checkpoint) throws Exception {
      return Contender.seconds(() -> {
        var _ = store.save(checkpoint, options);
      });
    }

    private UnsavedCheckpoint next() {
      SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
      groups.put("model", tensors);
      return new UnsavedCheckpoint(++step, groups, Map.of(), Map.of(), Map.of());
    }

    @Override
    public void close() {
      store.close();
    }
  }

  private final class Stall extends Save {
    private final SaveQueue queue;

    Stall(String name, SnapshotLimits limits, WriteOptions options) {
      super(name, options);
      queue = new SaveQueue(store, limits, BusyPolicy.WAIT, options);
    }

    @Override
    double save(UnsavedCheckpoint checkpoint) throws Exception {
      long start = System.nanoTime();
      CompletableFuture<SaveOutcome> outcome = queue.submit(checkpoint);
      double stalled = (System.nanoTime() - start) / 1e9;
      queue.await();
      double durable = (System.nanoTime() - start) / 1e9;
      if (outcome.join() instanceof SaveOutcome.Saved saved) {
        System.out.printf(
            "# %s: durable after %.3f s, by %s%n", name(), durable, saved.bytesByTransport());
      }
      return stalled;
    }

    @Override
    public void close() {
      queue.close();
      super.close();
    }
  }

  private static void remove(Path checkpoint) throws IOException {
    try (Stream<Path> files = Files.list(checkpoint)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
    }
    Files.delete(checkpoint);
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
