// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.internal.weights.TensorSlice;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/// Weights onto several GPUs, beside loads onto one after the other: `SeveralGpusBench
/// replicas|slices|slice-readers FILE DEVICES [TURNS]`. The turns alternate; the page cache is warm.
///
/// A time is that of the call: files are opened, the load is planned, and memory is allocated in it. That memory
/// is what the load before gave back; only the first load's is the driver's. Rings in C have theirs before the
/// clock starts.
public final class SeveralGpusBench {
  private static final long ROW_BYTES = 8 << 10;

  private final GantrySession session;
  private final List<StoredTensor> tensors;
  private final long bytes;
  private final List<Device> devices;

  private SeveralGpusBench(GantrySession session, Path file, int devices) {
    this.session = session;
    this.tensors =
        List.copyOf(
            WeightsFormats.open(GantrySession.shared(), Location.of(file)).tensors().values());
    this.bytes = tensors.stream().mapToLong(StoredTensor::bytes).sum();
    this.devices =
        IntStream.range(0, devices).<Device>mapToObj(ordinal -> new Device.Cuda(ordinal)).toList();
  }

  public static void main(String[] arguments) {
    int turns = arguments.length > 3 ? Integer.parseInt(arguments[3]) : 7;
    try (GantrySession session = GantrySession.open()) {
      SeveralGpusBench bench =
          new SeveralGpusBench(session, Path.of(arguments[1]), Integer.parseInt(arguments[2]));
      switch (arguments[0]) {
        case "replicas" -> bench.replicas(turns);
        case "slices" -> bench.slices(turns);
        case "slice-readers" -> bench.sliceReaders(turns);
        default -> throw new IllegalArgumentException(arguments[0]);
      }
    }
  }

  /// The tensors as matrices whose rows have 8 KiB for each rank, cut along one axis or the other, or in
  /// turns as a transformer's layers are.
  private void slices(int turns) {
    slices("along axis 0", turns, 0, 0);
    slices("along axis 1, rows of 8 KiB a rank", turns, 1, 1);
    slices("along both in turns", turns, 0, 1);
  }

  private void slices(String label, int turns, int even, int odd) {
    List<List<StoredTensor>> ranks =
        IntStream.range(0, devices.size()).mapToObj(rank -> parts(rank, even, odd)).toList();
    long all = ranks.stream().flatMap(List::stream).mapToLong(StoredTensor::bytes).sum();
    double[] seconds = new double[turns];
    TransferReport report = TransferReport.NOTHING;
    for (int turn = -1; turn < turns; turn++) {
      long start = System.nanoTime();
      List<LoadedTensors> loaded = LoadedTensors.loadSlices(session, ranks, devices, options());
      double now = (System.nanoTime() - start) / 1e9;
      if (turn < 0) {
        System.out.printf(Locale.ROOT, "slices\t%s: first load %.0f ms%n", label, now * 1e3);
        checkSlices(label, ranks, loaded);
      } else {
        seconds[turn] = now;
      }
      report = loaded.getFirst().report();
      loaded.forEach(LoadedTensors::close);
    }
    LoadTimeline.print(
        label,
        3,
        () -> LoadedTensors.loadSlices(session, ranks, devices, options()),
        loaded -> loaded.getFirst().report(),
        loaded -> loaded.forEach(LoadedTensors::close));
    System.out.printf(
        Locale.ROOT,
        "slices\t%s: turns in ms: %s%n",
        label,
        Arrays.stream(seconds).mapToObj(each -> "%.0f".formatted(each * 1e3)).toList());
    System.out.printf(
        Locale.ROOT,
        "slices\t%s: %d GPUs, median %.3f s, %.1f GB/s together (best %.1f); read from storage:"
            + " %.4f of the bytes%n",
        label,
        devices.size(),
        median(seconds),
        all / 1e9 / median(seconds),
        all / 1e9 / Arrays.stream(seconds).min().orElseThrow(),
        (double) report.bytes() / all);
  }

  /// How many readers, and which requests, bring slices soonest: in turns.
  private void sliceReaders(int turns) {
    List<List<StoredTensor>> ranks =
        IntStream.range(0, devices.size()).mapToObj(rank -> parts(rank, 0, 0)).toList();
    long all = ranks.stream().flatMap(List::stream).mapToLong(StoredTensor::bytes).sum();
    List<TransferOptions> ways = new ArrayList<>();
    for (int threads : new int[] {4, 6, 8, 10, 12, 16}) {
      ways.add(options().withThreads(threads));
    }
    for (long mebibytes : new long[] {2, 4, 16}) {
      ways.add(
          options()
              .withThreads(8)
              .withLimits(PlanLimits.DEFAULT.withRequestBytes(mebibytes << 20)));
    }
    double[][] seconds = new double[ways.size()][turns];
    for (int turn = -1; turn < turns; turn++) {
      for (int way = 0; way < ways.size(); way++) {
        TransferOptions options = ways.get(way);
        long start = System.nanoTime();
        List<LoadedTensors> loaded = LoadedTensors.loadSlices(session, ranks, devices, options);
        seconds[way][Math.max(0, turn)] = (System.nanoTime() - start) / 1e9;
        loaded.forEach(LoadedTensors::close);
      }
    }
    for (int way = 0; way < ways.size(); way++) {
      System.out.printf(
          Locale.ROOT,
          "slice-readers\t%d a GPU, requests of %d MiB: median %.1f GB/s together (best %.1f)%n",
          ways.get(way).threads(),
          ways.get(way).limits().requestBytes() >> 20,
          all / 1e9 / median(seconds[way]),
          all / 1e9 / Arrays.stream(seconds[way]).min().orElseThrow());
    }
  }

  private List<StoredTensor> parts(int rank, int even, int odd) {
    List<StoredTensor> parts = new ArrayList<>();
    for (int i = 0; i < tensors.size(); i++) {
      StoredTensor tensor = tensors.get(i);
      long elementBytes = tensor.dtype().bits() / Byte.SIZE;
      long columns = devices.size() * ROW_BYTES / elementBytes;
      long rows = tensor.bytes() / elementBytes / columns / devices.size() * devices.size();
      Extent extent =
          new Extent(
              tensor.extent().file(), tensor.extent().offset(), rows * columns * elementBytes);
      StoredTensor matrix =
          new StoredTensor(tensor.name(), tensor.dtype(), TensorShape.of(rows, columns), extent);
      TensorSlice slice = new TensorSlice(i % 2 == 0 ? even : odd, List.of(1));
      parts.add(slice.of(matrix, rank, devices.size()));
    }
    return parts;
  }

  /// Compares with what the host gets.
  private void checkSlices(
      String label, List<List<StoredTensor>> ranks, List<LoadedTensors> loaded) {
    for (int rank = 0; rank < devices.size(); rank++) {
      int wrong = 0;
      try (LoadedTensors host =
          LoadedTensors.load(session, ranks.get(rank), Device.HOST, options())) {
        for (int i = 0; i < tensors.size(); i++) {
          int expected = session.checksum(host.regions().get(i).source());
          Region region = loaded.get(rank).regions().get(i);
          wrong += session.checksum(region.source()) == expected ? 0 : 1;
        }
      }
      System.out.printf(
          "checked\t%s, %s: %d of %d tensors differ from the host's%n",
          label, devices.get(rank), wrong, tensors.size());
    }
  }

  private void replicas(int turns) {
    check();
    double[] inTurn = new double[turns];
    double[] atOnce = new double[turns];
    double[] alone = new double[turns];
    TransferReport report = TransferReport.NOTHING;
    for (int turn = 0; turn < turns; turn++) {
      for (Device device : devices) {
        double seconds = seconds(() -> LoadedTensors.load(session, tensors, device, options()));
        inTurn[turn] += seconds;
        alone[turn] = seconds;
      }
      List<LoadedTensors> loaded = new ArrayList<>();
      long start = System.nanoTime();
      loaded.addAll(LoadedTensors.loadOnEach(session, tensors, devices, options()));
      atOnce[turn] = (System.nanoTime() - start) / 1e9;
      report = loaded.getFirst().report();
      loaded.forEach(LoadedTensors::close);
    }
    double[] ratios =
        IntStream.range(0, turns).mapToDouble(turn -> atOnce[turn] / inTurn[turn]).toArray();
    System.out.printf(
        Locale.ROOT,
        "replicas\t%.2f GB onto %d GPUs: median %.3f s at once (%.1f GB/s of memory filled), %.3f s"
            + " one after the other, %.3f s onto one (%.1f GB/s); ratio %.3f (best %.3f, worst"
            + " %.3f)%n",
        bytes / 1e9,
        devices.size(),
        median(atOnce),
        devices.size() * bytes / 1e9 / median(atOnce),
        median(inTurn),
        median(alone),
        bytes / 1e9 / median(alone),
        median(ratios),
        Arrays.stream(ratios).min().orElseThrow(),
        Arrays.stream(ratios).max().orElseThrow());
    System.out.printf(
        Locale.ROOT,
        "replicas\tread from storage: %.4f of the bytes%n",
        (double) report.bytes() / bytes);
    for (TransferReport.DeviceReport device : report.devices()) {
      System.out.printf(
          Locale.ROOT,
          "replicas\t%s: %.2f GB from the host, %.2f GB from other GPUs%s%n",
          device.device(),
          device.fromHostBytes() / 1e9,
          device.fromDevicesBytes() / 1e9,
          device.reason().isEmpty() ? "" : " (" + device.reason() + ")");
    }
  }

  private static TransferOptions options() {
    return TransferOptions.defaults();
  }

  /// Compares all bytes on each GPU with the file's, which also brings the file into the page cache.
  private void check() {
    List<Extent> extents = tensors.stream().map(StoredTensor::extent).toList();
    int[] expected = session.checksums(extents);
    List<LoadedTensors> loaded = LoadedTensors.loadOnEach(session, tensors, devices, options());
    for (int i = 0; i < devices.size(); i++) {
      int wrong = 0;
      for (int tensor = 0; tensor < expected.length; tensor++) {
        Region region = loaded.get(i).regions().get(tensor);
        wrong += session.checksum(region.source()) == expected[tensor] ? 0 : 1;
      }
      System.out.printf(
          "checked\t%s: %d of %d tensors differ from the file%n",
          devices.get(i), wrong, expected.length);
      loaded.get(i).close();
    }
  }

  /// What makes loaded tensors.
  @FunctionalInterface
  private interface Load {
    LoadedTensors run();
  }

  private static double seconds(Load load) {
    long start = System.nanoTime();
    LoadedTensors loaded = load.run();
    double seconds = (System.nanoTime() - start) / 1e9;
    loaded.close();
    return seconds;
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }
}
