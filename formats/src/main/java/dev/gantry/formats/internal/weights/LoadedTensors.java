// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Room;
import dev.gantry.core.internal.plan.Wanted;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.HostFill;
import dev.gantry.core.internal.session.LoadMemory;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Tensors of one load, in memory: dense, in C order, little endian, whatever their encodings.
/// Closing it gives up its own shares of the memory; regions that were retained stay. Thread-safe.
public final class LoadedTensors implements AutoCloseable {
  private final List<Region> regions;
  private final TransferReport report;
  private final List<Loaded> parts;

  private LoadedTensors(List<Region> regions, TransferReport report, List<Loaded> parts) {
    this.regions = regions;
    this.report = report;
    this.parts = parts;
  }

  /// Loads tensors into memory of a device: plain ones by the best transport, the others by way of
  /// the CPU.
  ///
  /// @throws dev.gantry.core.TransferException if a file or device fails, or the caller cancels;
  ///     nothing stays loaded then
  /// @throws dev.gantry.core.MalformedFileException if a tensor cannot be decoded
  public static LoadedTensors load(
      GantrySession session, List<StoredTensor> tensors, Device device, TransferOptions options) {
    List<StoredTensor> plain = tensors.stream().filter(StoredTensor::isPlain).toList();
    if (plain.size() == tensors.size()) {
      return of(
          tensors,
          session.load(tensors.stream().map(LoadedTensors::wanted).toList(), device, options),
          null);
    }
    Room.require(
        memory(session, tensors, device, false, options).most(),
        device,
        "load fewer tensors at once, or close what is loaded and not needed");
    long plainBytes = bytes(plain);
    long total = bytes(tensors);
    ProgressListener progress = options.progress();
    Loaded read =
        session.load(
            plain.stream().map(LoadedTensors::wanted).toList(),
            device,
            options.withProgress(
                (done, _) -> progress.onProgress(Math.min(done, plainBytes), total)));
    return withOthers(
        session,
        tensors,
        read,
        device,
        options.withProgress((done, _) -> progress.onProgress(plainBytes + done, total)));
  }

  /// As [#load], onto each of several devices: each byte is read once, and what the CPU must put in
  /// order is made once.
  ///
  /// @return one for each device, in their order
  public static List<LoadedTensors> loadOnEach(
      GantrySession session,
      List<StoredTensor> tensors,
      List<Device> devices,
      TransferOptions options) {
    if (devices.size() == 1) {
      return List.of(load(session, tensors, devices.getFirst(), options));
    }
    List<StoredTensor> others = tensors.stream().filter(tensor -> !tensor.isPlain()).toList();
    List<Loaded> plain =
        session.loadOnEach(
            tensors.stream().filter(StoredTensor::isPlain).map(LoadedTensors::wanted).toList(),
            devices,
            options);
    List<LoadedTensors> all = new ArrayList<>();
    try {
      if (others.isEmpty()) {
        plain.forEach(each -> all.add(of(tensors, each, null)));
        return all;
      }
      try (LoadedTensors made = load(session, others, Device.HOST, options)) {
        for (int i = 0; i < devices.size(); i++) {
          List<HostFill> fills =
              made.regions().stream()
                  .map(region -> new HostFill(region.length(), region::copyTo))
                  .toList();
          all.add(of(tensors, plain.get(i), session.fill(fills, devices.get(i), options)));
        }
      }
      return all;
    } finally {
      if (all.size() < devices.size()) {
        all.forEach(LoadedTensors::close);
        plain.subList(all.size(), devices.size()).forEach(Loaded::close);
      }
    }
  }

  /// The memory that [#load] takes, or [#map], told before anything is allocated.
  ///
  /// @param lazy whether the files are mapped
  public static LoadMemory memory(
      GantrySession session,
      List<StoredTensor> tensors,
      Device device,
      boolean lazy,
      TransferOptions options) {
    List<Wanted> plain = new ArrayList<>();
    List<Long> others = new ArrayList<>();
    List<Integer> order = new ArrayList<>(tensors.size());
    int plainTensors = (int) tensors.stream().filter(StoredTensor::isPlain).count();
    for (StoredTensor tensor : tensors) {
      if (tensor.isPlain()) {
        order.add(plain.size());
        plain.add(wanted(tensor));
      } else {
        order.add(plainTensors + others.size());
        others.add(tensor.bytes());
      }
    }
    LoadMemory read = lazy ? session.mapMemory(plain) : session.loadMemory(plain, device, options);
    return others.isEmpty()
        ? read
        : read.then(session.fillMemory(others, device, options)).inOrder(order);
  }

  /// Maps the files of plain tensors; the others are read at once. For memory of the CPU.
  public static LoadedTensors map(
      GantrySession session, List<StoredTensor> tensors, TransferOptions options) {
    Loaded mapped =
        session.map(
            tensors.stream().filter(StoredTensor::isPlain).map(LoadedTensors::wanted).toList());
    return withOthers(session, tensors, mapped, Device.HOST, options);
  }

  /// The bytes of a plain tensor, at an address where its elements are aligned.
  ///
  /// @throws MisuseException if the tensor is not plain
  public static Wanted wanted(StoredTensor tensor) {
    if (!tensor.isPlain()) {
      throw new MisuseException(
          "tensor '" + tensor.name() + "' is not plain: its extent is not its value");
    }
    return new Wanted(tensor.extent(), tensor.dtype().alignmentBytes());
  }

  private static LoadedTensors withOthers(
      GantrySession session,
      List<StoredTensor> tensors,
      Loaded plain,
      Device device,
      TransferOptions options) {
    List<HostFill> fills =
        tensors.stream()
            .filter(tensor -> !tensor.isPlain())
            .map(tensor ->
                new HostFill(tensor.bytes(), target -> TensorReading.read(tensor, target)))
            .toList();
    if (fills.isEmpty()) {
      return of(tensors, plain, null);
    }
    boolean complete = false;
    try {
      Loaded others = session.fill(fills, device, options);
      complete = true;
      return of(tensors, plain, others);
    } finally {
      if (!complete) {
        plain.close();
      }
    }
  }

  private static LoadedTensors of(
      List<StoredTensor> tensors, Loaded plain, @Nullable Loaded others) {
    if (others == null) {
      return new LoadedTensors(plain.regions(), plain.report(), List.of(plain));
    }
    Iterator<Region> read = plain.regions().iterator();
    Iterator<Region> made = others.regions().iterator();
    List<Region> regions = new ArrayList<>(tensors.size());
    tensors.forEach(tensor -> regions.add((tensor.isPlain() ? read : made).next()));
    return new LoadedTensors(regions, plain.report().plus(others.report()), List.of(plain, others));
  }

  private static long bytes(List<StoredTensor> tensors) {
    return tensors.stream().mapToLong(StoredTensor::bytes).reduce(0, Math::addExact);
  }

  /// One a tensor, in the order in which they were asked for.
  public List<Region> regions() {
    return regions;
  }

  public TransferReport report() {
    return report;
  }

  @Override
  public void close() {
    parts.forEach(Loaded::close);
  }
}
