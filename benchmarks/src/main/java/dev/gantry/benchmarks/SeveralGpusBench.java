// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.internal.weights.TensorSlice;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/// Measures loads of weights onto several GPUs that read each byte once from the file:
/// `several-gpus replicas|slices FILE DEVICES [TURNS]`.
///
/// The clock covers the whole call, which opens files, plans the load and allocates memory. The
/// driver allocates the memory of the first load; later loads get the memory that the load before
/// them gave back. The C programs, in contrast, allocate their rings before the clock starts.
public final class SeveralGpusBench {
  private static final long ROW_BYTES = 8 << 10;
  private static final TransferOptions OPTIONS = TransferOptions.defaults();

  private final GantrySession session;
  private final Path file;
  private final List<StoredTensor> tensors;
  private final List<Device> devices;
  private final int turns;

  private SeveralGpusBench(GantrySession session, Path file, int devices, int turns) {
    this.session = session;
    this.file = file;
    this.tensors = List.copyOf(WeightsFormats.open(session, Location.of(file)).tensors().values());
    this.devices =
        IntStream.range(0, devices).<Device>mapToObj(ordinal -> new Device.Cuda(ordinal)).toList();
    this.turns = turns;
  }

  private interface Load {
    List<LoadedTensors> run();
  }

  public static void main(String[] arguments) throws Exception {
    int turns = arguments.length > 3 ? Integer.parseInt(arguments[3]) : 7;
    try (GantrySession session = GantrySession.open()) {
      SeveralGpusBench bench =
          new SeveralGpusBench(
              session, Path.of(arguments[1]), Integer.parseInt(arguments[2]), turns);
      switch (arguments[0]) {
        case "replicas" -> bench.replicas();
        case "slices" -> bench.slices();
        default -> throw new IllegalArgumentException(arguments[0]);
      }
    }
  }

  /// Loads all tensors onto each device, by one load for each device and by one load for all
  /// devices.
  private void replicas() throws Exception {
    Load replicated = () -> LoadedTensors.loadOnEach(session, tensors, devices, OPTIONS);
    check("replicas", replicated, Collections.nCopies(devices.size(), tensors));
    comparison("replicas", tensors)
        .addTimed("one after the other", this::oneAfterTheOther)
        .add(
            Contender.closing(
                "one GPU only",
                () -> LoadedTensors.load(session, tensors, devices.getFirst(), OPTIONS)))
        .add(contender("at once", replicated))
        .print(turns);
  }

  private double oneAfterTheOther() {
    double seconds = 0;
    for (Device device : devices) {
      long start = System.nanoTime();
      LoadedTensors loaded = LoadedTensors.load(session, tensors, device, OPTIONS);
      seconds += (System.nanoTime() - start) / 1e9;
      loaded.close();
    }
    return seconds;
  }

  /// Loads slices of the tensors, which are regarded as matrices whose rows have 8 KiB for each
  /// rank. All matrices are cut along one axis, all along the other, or alternately along both,
  /// like the layers of a transformer.
  private void slices() throws Exception {
    List<StoredTensor> parts = new ArrayList<>();
    List<Contender> contenders = new ArrayList<>();
    for (int[] axes : new int[][] {{0, 0}, {1, 1}, {0, 1}}) {
      String name = "along axes " + axes[0] + " and " + axes[1] + " in turns";
      List<List<StoredTensor>> ranks =
          IntStream.range(0, devices.size()).mapToObj(rank -> parts(rank, axes)).toList();
      Load sliced = () -> LoadedTensors.loadSlices(session, ranks, devices, OPTIONS);
      check(name, sliced, ranks);
      contenders.add(contender(name, sliced));
      if (parts.isEmpty()) {
        ranks.forEach(parts::addAll);
      }
    }
    comparison("slices", parts).addAll(contenders).print(turns);
  }

  private List<StoredTensor> parts(int rank, int[] axes) {
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
      parts.add(new TensorSlice(axes[i % 2], List.of(1)).of(matrix, rank, devices.size()));
    }
    return parts;
  }

  private Comparison comparison(String what, List<StoredTensor> loaded) {
    return new Comparison(what + " on " + devices.size() + " GPUs", bytes(loaded))
        .warm(List.of(file));
  }

  private static long bytes(List<StoredTensor> tensors) {
    return tensors.stream().mapToLong(StoredTensor::bytes).sum();
  }

  private static Contender contender(String name, Load load) {
    return Contender.closing(
        name,
        () -> {
          List<LoadedTensors> loaded = load.run();
          return () -> loaded.forEach(LoadedTensors::close);
        });
  }

  /// Compares each device's tensors with those of a load onto the host, and prints which transports carried
  /// the bytes.
  ///
  /// @param wanted each device's tensors
  private void check(String name, Load load, List<List<StoredTensor>> wanted) {
    List<LoadedTensors> loaded = load.run();
    long bytes = wanted.stream().mapToLong(SeveralGpusBench::bytes).sum();
    TransferReport report = loaded.getFirst().report();
    System.out.printf(
        Locale.ROOT,
        "%s\tread from storage: %.4f of the bytes of all GPUs; %s%n",
        name,
        (double) report.bytes() / bytes,
        report.devices());
    for (int i = 0; i < devices.size(); i++) {
      try (LoadedTensors host = LoadedTensors.load(session, wanted.get(i), Device.HOST, OPTIONS)) {
        for (int tensor = 0; tensor < tensors.size(); tensor++) {
          if (session.checksum(host.regions().get(tensor).source())
              != session.checksum(loaded.get(i).regions().get(tensor).source())) {
            throw new WrongBytesException(
                name + ": tensor " + tensor + " differs on " + devices.get(i));
          }
        }
      }
      loaded.get(i).close();
    }
  }
}
