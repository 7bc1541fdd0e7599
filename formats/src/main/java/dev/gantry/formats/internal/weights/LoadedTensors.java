// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.StridedRange;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.HostFill;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.session.Sliced;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.IntFunction;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// The tensors of one load in memory: dense, in C order, little endian, whatever their encodings.
/// Closing it releases its own shares of the memory; regions that others have retained stay.
/// Thread-safe.
public final class LoadedTensors implements AutoCloseable {
  private final List<Region> regions;
  private final TransferReport report;
  private final List<Loaded> parts;

  private LoadedTensors(List<Region> regions, TransferReport report, List<Loaded> parts) {
    this.regions = regions;
    this.report = report;
    this.parts = parts;
  }

  /// Loads tensors into a device's memory. Plain tensors, slices and joined tensors come by the
  /// best transport; the CPU decodes all other tensors first.
  ///
  /// @throws dev.gantry.core.TransferException if a file or device fails, or the caller cancels;
  ///     nothing stays loaded then
  /// @throws dev.gantry.core.MalformedFileException if a tensor cannot be decoded
  public static LoadedTensors load(
      GantrySession session, List<StoredTensor> tensors, Device device, TransferOptions options) {
    if (tensors.stream().allMatch(StoredTensor::isPlain)) {
      return Cleanup.orUndo(
          () -> session.load(wanted(tensors), device, options), LoadedTensors::of, Loaded::close);
    }
    Admission.require(
        MemoryUse.on(device, bytes(tensors)),
        device,
        "load fewer tensors at once, or close what is loaded and not needed");
    return slices(session, List.of(tensors), List.of(device), options).getFirst();
  }

  /// Whether the CPU must compute a tensor's elements, which a load cannot copy from the file.
  private static boolean isMade(StoredTensor tensor) {
    return switch (tensor.encoding()) {
      case Encoding.Plain _, Encoding.Sliced _, Encoding.Joined _ -> false;
      case Encoding.Strided _, Encoding.Decoded _, Encoding.Quantised _ -> true;
    };
  }

  private static List<StoredTensor> plain(List<StoredTensor> tensors) {
    return tensors.stream().filter(StoredTensor::isPlain).toList();
  }

  /// @param before how many of the load's bytes are already loaded
  /// @param part how many bytes this part loads; reads may report more, since they include the blocks at
  ///     the edges
  private static TransferOptions counted(
      TransferOptions options, long before, long part, long total) {
    if (part == total) {
      return options;
    }
    ProgressListener progress = options.progress();
    return options.withProgress(
        (done, _) -> progress.onProgress(before + Math.min(done, part), total));
  }

  /// Returns the rows of bytes that fill the memory of a plain tensor or a slice.
  private static Sliced sliced(StoredTensor tensor) {
    Extent extent = tensor.extent();
    List<StridedRange> ranges =
        switch (tensor.encoding()) {
          case Encoding.Sliced(var slices) ->
              slices.stream()
                  .map(rows -> new StridedRange(extent.file(), rows.shifted(extent.offset(), 0)))
                  .toList();
          case Encoding.Joined(var parts) ->
              parts.stream().map(part -> new StridedRange(part.file(), part.rows())).toList();
          case Encoding.Plain _, Encoding.Strided _, Encoding.Decoded _, Encoding.Quantised _ ->
              tensor.bytes() == 0
                  ? List.of()
                  : List.of(StridedRange.of(wanted(tensor).extent(), 0));
        };
    return new Sliced(ranges, tensor.bytes());
  }

  /// Loads tensors onto each of several devices, as [#load] does. Each byte is read once, and the CPU puts
  /// each tensor in order once.
  ///
  /// @return the tensors of each device, in the order of the devices
  public static List<LoadedTensors> loadOnEach(
      GantrySession session,
      List<StoredTensor> tensors,
      List<Device> devices,
      TransferOptions options) {
    if (devices.size() == 1) {
      return List.of(load(session, tensors, devices.getFirst(), options));
    }
    List<StoredTensor> plain = plain(tensors);
    List<StoredTensor> others = tensors.stream().filter(tensor -> !tensor.isPlain()).toList();
    List<Loaded> read =
        session.loadOnEach(
            wanted(plain), devices, counted(options, 0, bytes(plain), bytes(tensors)));
    if (others.isEmpty()) {
      return each(read, i -> of(read.get(i)));
    }
    LoadedTensors made =
        Cleanup.orUndo(
            () -> load(session, others, Device.HOST, options),
            () -> Cleanup.forEach(read, Loaded::close));
    try (made) {
      List<HostFill> fills =
          made.regions().stream()
              .map(region -> new HostFill(region.length(), region::copyTo))
              .toList();
      return each(
          read,
          i -> {
            Loaded filled = session.fill(fills, devices.get(i), options);
            return joined(tensors, StoredTensor::isPlain, of(read.get(i)), of(filled));
          });
    }
  }

  /// Waits for the loads of all devices. If one load fails, nothing stays loaded.
  private static List<LoadedTensors> each(List<Loaded> read, IntFunction<LoadedTensors> completed) {
    List<LoadedTensors> all = new ArrayList<>();
    return Cleanup.orUndo(
        () -> {
          IntStream.range(0, read.size()).mapToObj(completed).forEach(all::add);
          return all;
        },
        () -> {
          Cleanup.forEach(all, LoadedTensors::close);
          Cleanup.forEach(read.subList(all.size(), read.size()), Loaded::close);
        });
  }

  /// Loads different tensors onto each of several devices, such as the slices of as many ranks. Each byte
  /// is read once, even if several devices want it.
  ///
  /// @param tensors the tensors of each device
  /// @return the tensors of each device, in the order of the devices
  public static List<LoadedTensors> loadSlices(
      GantrySession session,
      List<List<StoredTensor>> tensors,
      List<Device> devices,
      TransferOptions options) {
    return devices.size() == 1
        ? List.of(load(session, tensors.getFirst(), devices.getFirst(), options))
        : slices(session, tensors, devices, options);
  }

  /// Copies the bytes of plain tensors and slices, and then decodes all other tensors.
  private static List<LoadedTensors> slices(
      GantrySession session,
      List<List<StoredTensor>> tensors,
      List<Device> devices,
      TransferOptions options) {
    long total = tensors.stream().mapToLong(LoadedTensors::bytes).sum();
    List<List<Sliced>> parts =
        tensors.stream()
            .map(each ->
                each.stream().filter(tensor -> !isMade(tensor)).map(LoadedTensors::sliced).toList())
            .toList();
    long copied = parts.stream().flatMap(List::stream).mapToLong(Sliced::bytes).sum();
    List<Loaded> read = session.loadSlices(devices, parts, counted(options, 0, copied, total));
    long[] done = {copied};
    return each(
        read,
        i -> {
          List<HostFill> fills = fills(session, tensors.get(i));
          if (fills.isEmpty()) {
            return of(read.get(i));
          }
          long bytes = fills.stream().mapToLong(HostFill::bytes).sum();
          TransferOptions counted = counted(options, done[0], bytes, total);
          done[0] += bytes;
          LoadedTensors made = of(session.fill(fills, devices.get(i), counted));
          return joined(tensors.get(i), tensor -> !isMade(tensor), of(read.get(i)), made);
        });
  }

  /// Maps plain tensors' files into the CPU's memory, and reads other tensors at once.
  public static LoadedTensors map(
      GantrySession session, List<StoredTensor> tensors, TransferOptions options) {
    List<StoredTensor> others = tensors.stream().filter(tensor -> !tensor.isPlain()).toList();
    return Cleanup.orUndo(
        () -> session.map(wanted(plain(tensors))),
        mapped ->
            others.isEmpty()
                ? of(mapped)
                : joined(
                    tensors,
                    StoredTensor::isPlain,
                    of(mapped),
                    load(session, others, Device.HOST, options)),
        Loaded::close);
  }

  private static List<ExtentRequest> wanted(List<StoredTensor> plain) {
    return plain.stream().map(LoadedTensors::wanted).toList();
  }

  /// Requests a plain tensor's bytes, at an address where its elements are aligned.
  ///
  /// @throws MisuseException if the tensor is not plain
  public static ExtentRequest wanted(StoredTensor tensor) {
    if (!tensor.isPlain()) {
      throw new MisuseException(
          "tensor '" + tensor.name() + "' is not plain: its extent is not its value");
    }
    return new ExtentRequest(tensor.extent(), tensor.dtype().alignmentBytes());
  }

  private static List<HostFill> fills(GantrySession session, List<StoredTensor> tensors) {
    return tensors.stream()
        .filter(LoadedTensors::isMade)
        .map(tensor ->
            new HostFill(tensor.bytes(), target -> TensorReading.read(session, tensor, target)))
        .toList();
  }

  private static LoadedTensors of(Loaded all) {
    return new LoadedTensors(all.regions(), all.report(), List.of(all));
  }

  /// @param isOne whether a tensor is among those of `one`
  private static LoadedTensors joined(
      List<StoredTensor> tensors,
      Predicate<StoredTensor> isOne,
      LoadedTensors one,
      LoadedTensors other) {
    Iterator<Region> ofOne = one.regions.iterator();
    Iterator<Region> ofOther = other.regions.iterator();
    return new LoadedTensors(
        tensors.stream().map(tensor -> isOne.test(tensor) ? ofOne.next() : ofOther.next()).toList(),
        one.report.plus(other.report),
        Stream.concat(one.parts.stream(), other.parts.stream()).toList());
  }

  private static long bytes(List<StoredTensor> tensors) {
    return tensors.stream().mapToLong(StoredTensor::bytes).reduce(0, Math::addExact);
  }

  /// The tensors' regions, in the order in which the tensors were asked for.
  public List<Region> regions() {
    return regions;
  }

  public TransferReport report() {
    return report;
  }

  @Override
  public void close() {
    Cleanup.forEach(parts, Loaded::close);
  }
}
