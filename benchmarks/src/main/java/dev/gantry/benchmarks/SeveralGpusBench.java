// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/// Weights onto several GPUs, beside loads onto one after the other: `SeveralGpusBench FILE DEVICES
/// [TURNS]`. The turns alternate; the page cache is warm.
public final class SeveralGpusBench {
  private final GantrySession session;
  private final List<StoredTensor> tensors;
  private final long bytes;
  private final List<Device> devices;

  private SeveralGpusBench(GantrySession session, Path file, int devices) {
    this.session = session;
    this.tensors = List.copyOf(WeightsFormats.open(Location.of(file)).tensors().values());
    this.bytes = tensors.stream().mapToLong(StoredTensor::bytes).sum();
    this.devices =
        IntStream.range(0, devices).<Device>mapToObj(ordinal -> new Device.Cuda(ordinal)).toList();
  }

  public static void main(String[] arguments) {
    try (GantrySession session = GantrySession.open()) {
      SeveralGpusBench bench =
          new SeveralGpusBench(session, Path.of(arguments[0]), Integer.parseInt(arguments[1]));
      bench.replicas(arguments.length > 2 ? Integer.parseInt(arguments[2]) : 7);
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
