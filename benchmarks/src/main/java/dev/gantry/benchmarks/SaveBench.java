// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Source;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.checkpoint.SaveQueue;
import dev.gantry.formats.internal.checkpoint.SavedCheckpoint;
import dev.gantry.formats.internal.checkpoint.UnsavedCheckpoint;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

/// How fast checkpoints get from a device's memory to the disk, durably: `SaveBench DEVICE FOLDER
/// rows|once|turns|sweep FILE…`. Each file's tensors are loaded once and saved into a folder of checkpoints
/// there.
///
/// A save counts from the call until the manifest is durable; a stall, from the call until the
/// snapshot is taken. `turns` writes the same bytes past the page cache before and after each save, by a
/// program that does nothing else, and gives the ratio of the two. Each saved checkpoint is read back once, and all
/// of its checksums compared.
public final class SaveBench {
  private static final long SHARD_BYTES = 5_000_000_000L;
  private static final int RUNS = 3;
  private static final int TURNS = 7;
  private static final Retention LAST = new Retention(1, 0, Optional.empty());

  private final GantrySession session;
  private final Path folder;
  private final String name;
  private final List<NewTensor> tensors;
  private final long bytes;
  private long step;

  private SaveBench(GantrySession session, Path folder, Path file, List<NewTensor> tensors) {
    this.session = session;
    this.folder = folder;
    this.name = file.getFileName() + ", " + tensors.size() + " tensors";
    this.tensors = tensors;
    this.bytes = tensors.stream().mapToLong(tensor -> tensor.source().length()).sum();
  }

  public static void main(String[] arguments) {
    Device device = Device.parse(arguments[0]);
    for (String argument : List.of(arguments).subList(3, arguments.length)) {
      Path file = Path.of(argument);
      List<StoredTensor> infos =
          List.copyOf(SafetensorsOpener.open(GantrySession.shared(), file).tensors().values());
      WriteClock clock = new WriteClock();
      try (GantrySession session = Sessions.over(clock);
          Loaded loaded =
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
        SaveBench bench = new SaveBench(session, Path.of(arguments[1]), file, tensors);
        switch (arguments[2]) {
          case "sweep" -> bench.sweep();
          case "once" -> bench.once();
          case "turns" -> bench.turns(clock);
          default -> bench.rows(device);
        }
      }
    }
  }

  private void rows(Device device) {
    save("transport by evidence", WriteOptions.defaults());
    save("through the page cache", WriteOptions.defaults().withPageCache(true));
    stall("snapshot in memory of the CPU", SnapshotLimits.DEFAULT, WriteOptions.defaults());
    if (device instanceof Device.Cuda) {
      SnapshotLimits onDevice = new SnapshotLimits(Long.MAX_VALUE, Long.MAX_VALUE);
      stall("snapshot on the device", onDevice, WriteOptions.defaults());
      // Its blocks are the file's, so cuFile can take them as they are.
      stall(
          "snapshot on the device, compat",
          onDevice,
          WriteOptions.defaults().withTransport(Transport.COMPAT));
    }
  }

  /// One save into an empty folder, and another one, without the removal of a checkpoint before.
  private void once() {
    save("transport by evidence", WriteOptions.defaults(), Retention.ALL, 2);
  }

  private void turns(WriteClock clock) {
    double[] ratios = new double[TURNS];
    try (CheckpointStore store = open(Retention.ALL)) {
      double before = ceiling(clock);
      for (int i = 0; i < TURNS; i++) {
        settle();
        clock.reset();
        long start = System.nanoTime();
        SavedCheckpoint saved = store.save(next(), WriteOptions.defaults());
        long end = System.nanoTime();
        double seconds = (end - start) / 1e9;
        long first = clock.first();
        long last = clock.last();
        check(saved.checkpoint());
        remove(saved.checkpoint().folder());
        double after = ceiling(clock);
        ratios[i] = (before + after) / 2 / seconds;
        System.out.printf(
            Locale.ROOT,
            "gantry save, turn %d\t%s\t%.3f of the ceilings beside it, %s and %s; %.1f ms to the"
                + " first write, writing %s, %.1f ms after the last%n",
            i + 1,
            rate(seconds),
            ratios[i],
            rate(before),
            rate(after),
            (first - start) / 1e6,
            rate((last - first) / 1e9),
            (end - last) / 1e6);
        before = after;
      }
    }
    Arrays.sort(ratios);
    System.out.printf(
        Locale.ROOT,
        "gantry save, median of %d turns\t%.3f of the O_DIRECT ceiling [%.3f, %.3f]%n",
        TURNS,
        ratios[TURNS / 2],
        ratios[0],
        ratios[TURNS - 1]);
  }

  private static void remove(Path checkpoint) {
    try (Stream<Path> files = Files.list(checkpoint)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
      Files.delete(checkpoint);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private double ceiling(WriteClock clock) {
    settle();
    return clock.ceiling(folder.resolve("ceiling"), bytes);
  }

  /// Saves by writers and request size, to choose the defaults by.
  private void sweep() {
    for (int threads : new int[] {1, 2, 4, 6, 8}) {
      for (int mib : new int[] {4, 8, 16, 32}) {
        save(
            threads + " threads x " + mib + " MiB",
            WriteOptions.defaults().withThreads(threads).withRequestBytes((long) mib << 20));
      }
    }
  }

  private void save(String label, WriteOptions options) {
    save(label + ", the one before removed", options, LAST, RUNS);
  }

  private void save(String label, WriteOptions options, Retention retention, int runs) {
    try (CheckpointStore store = open(retention)) {
      for (int i = 0; i < runs; i++) {
        settle();
        long start = System.nanoTime();
        SavedCheckpoint saved = store.save(next(), options);
        double seconds = (System.nanoTime() - start) / 1e9;
        WriteReport report = saved.report();
        print(
            "save",
            label,
            seconds,
            "writing alone "
                + rate(report.elapsed().toNanos() / 1e9)
                + ", "
                + report.bytesByTransport()
                + ", past the page cache "
                + report.directBytes());
        if (i == runs - 1) {
          check(CheckpointStore.list(GantrySession.shared(), folder).latest().orElseThrow());
        }
      }
    } catch (DeviceUnavailableException e) {
      System.out.printf("gantry save, %s\t-\t%s%n", label, e.getMessage());
    }
  }

  private void stall(String label, SnapshotLimits limits, WriteOptions options) {
    try (CheckpointStore store = open(LAST);
        SaveQueue queue = new SaveQueue(store, limits, BusyPolicy.WAIT, options)) {
      for (int i = 0; i < RUNS; i++) {
        queue.await();
        settle();
        long start = System.nanoTime();
        CompletableFuture<SaveOutcome> outcome = queue.submit(next());
        double stalled = (System.nanoTime() - start) / 1e9;
        queue.await();
        double seconds = (System.nanoTime() - start) / 1e9;
        print(
            "stall",
            label,
            stalled,
            String.format(Locale.ROOT, "%.1f ms; durable after %s", stalled * 1e3, rate(seconds)));
        if (i == RUNS - 1 && outcome.join() instanceof SaveOutcome.Saved saved) {
          System.out.printf("gantry\twent by\t%s%n", saved.bytesByTransport());
          check(CheckpointStore.list(GantrySession.shared(), folder).latest().orElseThrow());
        }
      }
    } catch (DeviceUnavailableException e) {
      System.out.printf("gantry stall, %s\t-\t%s%n", label, e.getMessage());
    }
  }

  /// The checkpoint before this one was removed, which some disks take seconds for: not in the time
  /// of a save, between which a training lets more than that pass.
  private static void settle() {
    try {
      new ProcessBuilder("sync").start().waitFor();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
  }

  private CheckpointStore open(Retention retention) {
    return CheckpointStore.open(session, folder, retention, SHARD_BYTES);
  }

  private UnsavedCheckpoint next() {
    SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
    groups.put("model", tensors);
    return new UnsavedCheckpoint(++step, groups, Map.of(), Map.of(), Map.of());
  }

  private void check(CheckpointFolder checkpoint) {
    long checked = 0;
    Map<String, NewTensor> originals = new HashMap<>();
    tensors.forEach(tensor -> originals.put(tensor.name(), tensor));
    for (StoredTensor info : checkpoint.open("model").tensors().values()) {
      int sum = session.checksum(new Source.FilePart(info.extent()));
      checkpoint.check(info, sum);
      NewTensor original = Objects.requireNonNull(originals.get(info.name()));
      if (sum != session.checksum(original.source())) {
        System.out.printf("gantry\tWRONG BYTES\t%s%n", info);
        System.exit(1);
      }
      checked += info.extent().length();
    }
    System.out.printf("gantry\tchecked\t%,d bytes of %s%n", checked, checkpoint.folder());
  }

  private void print(String what, String label, double seconds, String details) {
    System.out.printf("gantry %s, %s\t%s\t%s; %s%n", what, label, rate(seconds), name, details);
  }

  private String rate(double seconds) {
    return String.format(Locale.ROOT, "%.2f GB/s", bytes / 1e9 / seconds);
  }
}
