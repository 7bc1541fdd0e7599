// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.ReaderRule;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.StoredTensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/// One load of tensors as arrays, on one device or on several. If it fails, nothing stays loaded.
/// Only one thread may use an instance.
public final class TensorLoad {
  private static final long EDGES_BYTES = 1 << 20;

  private final GantrySession session;
  private final NDManager manager;
  private final LoadSettings settings;
  private final List<Device> devices;

  /// Whether all devices get the same tensors.
  private final boolean replicated;

  private TransferReport report = TransferReport.NOTHING;
  private final Set<String> taken = new HashSet<>();

  /// The bytes of tensors that are read directly into existing arrays, after the other tensors.
  private long placedBytes;

  /// Loads onto the settings' device, or the manager's.
  public TensorLoad(GantrySession session, NDManager manager, LoadSettings settings) {
    this(
        session, manager, List.of(settings.device().orElseGet(manager::getDevice)), true, settings);
  }

  /// Loads onto each of several devices. Each byte is read once.
  ///
  /// @param replicated whether all devices get the same tensors
  public TensorLoad(
      GantrySession session,
      NDManager manager,
      List<ai.djl.Device> devices,
      boolean replicated,
      LoadSettings settings) {
    this.session = session;
    this.manager = manager;
    this.settings = settings;
    this.replicated = replicated;
    PyTorch.requireOpen("the manager", manager);
    devices.forEach(asked -> {
      if (settings.lazy() && !PyTorch.device(asked).equals(Device.HOST)) {
        throw new MisuseException(
            "optLazy is for memory of the CPU only (the device was " + asked + ")");
      }
    });
    this.devices = devices.stream().map(PyTorch::arraysDevice).toList();
  }

  /// Loads all of these tensors, in the types that the settings ask for, and reports to the
  /// settings' listener.
  public NDList load(SequencedMap<String, StoredTensor> tensors) {
    return loadEach(List.of(tensors)).getFirst();
  }

  /// Does what [#load] does, for each device.
  ///
  /// @param tensors the tensors of each device, with the same names and types in the same order
  /// @return the arrays of each device, in the devices' order
  public List<NDList> loadEach(List<SequencedMap<String, StoredTensor>> tensors) {
    return Cleanup.orUndo(
        () -> arraysOfEach(tensors.stream().map(this::requests).toList()),
        arrays -> {
          report();
          return arrays.ofEach();
        },
        PipelinedLoad.Arrays::close);
  }

  private List<TensorRequest> requests(SequencedMap<String, StoredTensor> tensors) {
    List<TensorRequest> requests = new ArrayList<>();
    for (StoredTensor tensor : tensors.values()) {
      requests.add(TensorRequest.of(tensor, settings.types().of(tensor.name())));
    }
    return requests;
  }

  /// Whether a [TensorTaker] has taken a tensor already.
  boolean hasHandedOver() {
    return !taken.isEmpty();
  }

  /// Gives the report of the tensors loaded so far to the settings' listener.
  synchronized void report() {
    settings.report().accept(report);
  }

  /// An array for each request, with its tensor's name.
  NDList arrays(List<TensorRequest> requests) {
    return arraysOfEach(List.of(requests)).ofEach().getFirst();
  }

  /// Loads and casts part by part, so that at most three slabs of uncast tensors are in memory at
  /// a time.
  private PipelinedLoad.Arrays arraysOfEach(List<List<TensorRequest>> requests) {
    if (requests.getFirst().stream().noneMatch(TensorRequest::changes)) {
      return loaded(new LoadPart(requests), settings.transfer());
    }
    PipelinedLoad.Arrays arrays =
        new PipelinedLoad.Arrays(devices.stream().map(_ -> new NDList()).toList());
    PartUser cast =
        (part, loaded) -> {
          for (int i = 0; i < devices.size(); i++) {
            NDList each = loaded.ofEach().get(i);
            TypeChanges.cast(part.requests().get(i), each);
            arrays.ofEach().get(i).addAll(each);
            each.clear();
          }
        };
    // Two parts are read at a time. The first part is smaller, so that the two do not end at the
    // same time, and a part is always being read while another is converted.
    List<LoadPart> parts =
        LoadPart.of(requests, slabBytes() / 2, slabBytes(), TensorRequest::readBytes);
    Cleanup.orUndo(() -> eachPart(parts, requests, () -> {}, cast), arrays::close);
    return arrays;
  }

  /// Hands all tensors to `taker`, part by part, so that they never take more memory than three
  /// slabs. A tensor that is larger than a slab comes in several pieces, unless it has scales.
  /// Tensors after the first slab are read directly into the array that `taker` names for them, if
  /// there is one. Tensors of the first slab are not, so that a failure while they are read
  /// changes nothing.
  ///
  /// @throws TransferException if a file or device fails; if tensors have been taken already, the
  ///     message says so
  public void eachPart(List<StoredTensor> tensors, TensorTaker taker) {
    eachPart(
        tensors.stream().map(one -> TensorRequest.of(one, Optional.empty())).toList(),
        _ -> true,
        taker,
        () -> {});
  }

  /// @param splits whether a tensor may come in pieces
  /// @param beforeLast run after all parts are read, before the last part is taken
  void eachPart(
      List<TensorRequest> requests,
      Predicate<StoredTensor> splits,
      TensorTaker taker,
      Runnable beforeLast) {
    List<TensorRequest> beside = new ArrayList<>();
    SequencedMap<StoredTensor, NDArray> places = new LinkedHashMap<>();
    long room = slabBytes();
    for (TensorRequest request : requests) {
      Optional<NDArray> place =
          room > 0 || request.changes() ? Optional.empty() : taker.place(request.tensor());
      if (place.isPresent()) {
        places.put(request.tensor(), place.orElseThrow());
      } else {
        beside.add(request);
        room -= request.memoryBytes();
      }
    }
    placedBytes = places.keySet().stream().mapToLong(StoredTensor::bytes).sum();
    List<TensorRequest> pieces =
        beside.stream().flatMap(request -> pieces(request, splits)).toList();
    eachPart(
        LoadPart.of(List.of(pieces), slabBytes(), slabBytes(), TensorRequest::memoryBytes),
        List.of(beside),
        places.isEmpty() ? beforeLast : () -> {},
        (part, arrays) -> {
          for (int i = 0; i < part.requests().getFirst().size(); i++) {
            TensorRequest rows = part.requests().getFirst().get(i);
            String name = rows.tensor().name();
            taker.take(name, arrays.ofEach().getFirst().get(i), rows.first());
            taken.add(name);
          }
        });
    if (!places.isEmpty()) {
      readInto(places, beside.stream().mapToLong(TensorRequest::readBytes).sum());
      beforeLast.run();
    }
  }

  private Stream<TensorRequest> pieces(TensorRequest request, Predicate<StoredTensor> splits) {
    StoredTensor tensor = request.tensor();
    long bytes = request.memoryBytes();
    if (bytes <= slabBytes()
        || tensor.shape().rank() == 0
        || !tensor.isPlain()
        || !splits.test(tensor)) {
      return Stream.of(request);
    }
    long rows = tensor.shape().dimension(0);
    long step = Math.max(1, slabBytes() / (bytes / rows));
    return LongStream.iterate(0, first -> first < rows, first -> first + step)
        .mapToObj(first -> request.rows(first, Math.min(rows, first + step)));
  }

  /// @param before how many bytes the load has read before
  private void readInto(SequencedMap<StoredTensor, NDArray> places, long before) {
    SequencedMap<String, StoredTensor> tensors = new LinkedHashMap<>();
    SequencedMap<String, NDArray> arrays = new LinkedHashMap<>();
    places.forEach((tensor, array) -> {
      tensors.put(tensor.name(), tensor);
      arrays.put(tensor.name(), array);
    });
    TransferOptions transfer = settings.transfer();
    long all = before + placedBytes;
    TransferOptions counted =
        transfer.withProgress(
            (now, _) -> transfer.progress().onProgress(Math.min(before + now, all), all));
    try {
      add(new IntoLoad(session, counted).arrays(tensors, arrays));
    } catch (TransferException failed) {
      if (failed instanceof TransferException.IncompleteRead incomplete) {
        taken.addAll(incomplete.complete());
      }
      throw mixed(failed);
    }
    taken.addAll(tensors.keySet());
  }

  /// Uses the arrays of a part after its quantised tensors were converted. Arrays that the user
  /// leaves in the lists are closed.
  private interface PartUser {
    void use(LoadPart part, PipelinedLoad.Arrays arrays);
  }

  /// @param requests the requests of each device
  private void eachPart(
      List<LoadPart> parts,
      List<List<TensorRequest>> requests,
      Runnable beforeLast,
      PartUser user) {
    long begin = System.nanoTime();
    List<TypeChanges> changes = new ArrayList<>();
    try (PipelinedLoad ahead =
        new PipelinedLoad(
            partTransfer(parts),
            parts.stream().mapToLong(part -> part.bytes(replicated)).toArray(),
            placedBytes,
            (part, options) -> loaded(parts.get(part), options))) {
      for (int i = 0; i < devices.size(); i++) {
        changes.add(new TypeChanges(session, manager, devices.get(i), settings, requests.get(i)));
      }
      for (int i = 0; i < parts.size(); i++) {
        try (PipelinedLoad.Arrays arrays = next(ahead)) {
          if (i == parts.size() - 1) {
            setElapsed(parts.size(), System.nanoTime() - begin);
            beforeLast.run();
          }
          for (int device = 0; device < devices.size(); device++) {
            changes
                .get(device)
                .convert(parts.get(i).requests().get(device), arrays.ofEach().get(device));
          }
          user.use(parts.get(i), arrays);
        }
      }
    }
    if (parts.isEmpty()) {
      beforeLast.run();
    }
  }

  private long slabBytes() {
    return settings.transfer().limits().slabBytes();
  }

  /// The options of a part's transfer. Parts reuse the same memory of a device one after another.
  /// A slab is large enough for a part's tensors and for the blocks that reads fill around them;
  /// otherwise the part would need a second slab, which would double the memory.
  private TransferOptions partTransfer(List<LoadPart> parts) {
    if (parts.size() == 1) {
      return settings.transfer();
    }
    TransferOptions transfer = ReaderRule.ofTwo(devices.getFirst(), settings.transfer());
    long slab = slabBytes() + EDGES_BYTES;
    return transfer.withLimits(transfer.limits().withSlabBytes(slab)).withSlabCapacity(slab);
  }

  private PipelinedLoad.Arrays next(PipelinedLoad ahead) {
    try {
      return ahead.next();
    } catch (TransferException failed) {
      throw taken.isEmpty() ? failed : mixed(failed);
    } catch (MalformedFileException wrong) {
      throw taken.isEmpty() ? wrong : mixed(TransferException.of("load", wrong));
    }
  }

  private TransferException mixed(TransferException failed) {
    return new TransferException(
        "loading in place",
        taken.size()
            + " tensors have been copied to where they go and the others have not: load or"
            + " restore again before these are used; "
            + failed.getMessage(),
        failed.failure(),
        failed);
  }

  /// An array for each tensor of a part.
  private PipelinedLoad.Arrays loaded(LoadPart part, TransferOptions transfer) {
    List<List<StoredTensor>> tensors = part.tensors();
    PipelinedLoad.Arrays arrays =
        new PipelinedLoad.Arrays(tensors.stream().map(each -> new NDList(each.size())).toList());
    tensors.getFirst().stream().findFirst().ifPresent(first -> TorchArrays.prepare(first.dtype()));
    List<LoadedTensors> loaded = read(tensors, transfer);
    try {
      Cleanup.orUndo(
          () -> {
            for (int i = 0; i < devices.size(); i++) {
              for (int j = 0; j < tensors.get(i).size(); j++) {
                Region region = loaded.get(i).regions().get(j);
                arrays.ofEach().get(i).add(wrap(tensors.get(i).get(j), region, devices.get(i)));
              }
            }
            add(loaded.getFirst().report());
          },
          arrays::close);
    } finally {
      Cleanup.forEach(loaded, LoadedTensors::close);
    }
    return arrays;
  }

  private List<LoadedTensors> read(List<List<StoredTensor>> tensors, TransferOptions transfer) {
    if (settings.lazy()) {
      return List.of(LoadedTensors.map(session, tensors.getFirst(), transfer));
    }
    return replicated
        ? LoadedTensors.loadOnEach(session, tensors.getFirst(), devices, transfer)
        : LoadedTensors.loadSlices(session, tensors, devices, transfer);
  }

  private NDArray wrap(StoredTensor info, Region region, Device device) {
    boolean held = PyTorch.dataType(info.dtype()).isPresent();
    DType dtype = held ? info.dtype() : DType.U8;
    TensorShape shape = held ? info.shape() : TensorShape.of(region.length());
    return TorchArrays.over(manager, region, device, dtype, shape, info.name());
  }

  private synchronized void add(TransferReport part) {
    report = report.plus(part);
  }

  /// Sets the time of the whole load. Parts overlap, so the sum of their times would be too long.
  private synchronized void setElapsed(int parts, long nanos) {
    if (parts > 1) {
      report = report.withElapsed(Duration.ofNanos(nanos));
    }
  }
}
