// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Room;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.LoadMemory;
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
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/// One load of tensors as arrays. All or nothing. For one thread.
public final class TensorLoad {
  /// A tensor, and the floating-point type that it becomes.
  ///
  /// @param type empty for the stored one
  record Request(StoredTensor tensor, Optional<DataType> type) {}

  private static final long EDGES_BYTES = 1 << 20;

  /// Of one tensor and its scales.
  private static final long AMPLE_EDGES_BYTES = 16 << 10;

  private final GantrySession session;
  private final NDManager manager;
  private final LoadSettings settings;
  private final Device device;
  private final Scales scales;
  private TransferReport report = TransferReport.NOTHING;
  private final Set<String> taken = new HashSet<>();

  /// Of tensors that are read straight into their places, after the others.
  private long placedBytes;

  public TensorLoad(
      GantrySession session, NDManager manager, LoadSettings settings, Scales scales) {
    this.session = session;
    this.manager = manager;
    this.settings = settings;
    this.scales = scales;
    ai.djl.Device asked = settings.device().orElseGet(manager::getDevice);
    if (settings.lazy() && !PyTorch.device(asked).equals(Device.HOST)) {
      throw new MisuseException(
          "optLazy is for memory of the CPU only (the device was " + asked + ")");
    }
    this.device = PyTorch.arraysDevice(asked);
  }

  /// Loads all of these at once, in the types that the settings ask for, and tells the settings'
  /// listener.
  public NDList load(SequencedMap<String, StoredTensor> tensors) {
    NDList arrays = arrays(requests(tensors));
    return Cleanup.orUndo(
        () -> {
          report();
          return arrays;
        },
        arrays::close);
  }

  List<Request> requests(SequencedMap<String, StoredTensor> tensors) {
    List<Request> requests = new ArrayList<>();
    for (StoredTensor tensor : tensors.values()) {
      Optional<DataType> type = settings.types().of(tensor.name());
      if (type.isEmpty() || !scales.areOfCast(tensor.name(), settings.types())) {
        requests.add(new Request(tensor, type));
      }
    }
    return requests;
  }

  /// The most memory that [#load] of the same takes.
  public MemoryUse memoryUse(SequencedMap<String, StoredTensor> tensors) {
    List<Request> requests = requests(tensors);
    return changesAny(requests)
        ? mostChanged(requests, true)
        : memory(requests.stream().map(Request::tensor).toList(), settings.transfer()).most();
  }

  private LoadMemory memory(List<StoredTensor> tensors, TransferOptions transfer) {
    return LoadedTensors.memory(session, tensors, device, settings.lazy(), transfer);
  }

  /// Plans only where more than is ever taken does not fit: that takes 20 ms for as many thousand tensors.
  private void requireRoom(List<Request> requests) {
    long ample = 2 * (settings.transfer().limits().slabBytes() + EDGES_BYTES);
    for (Request request : requests) {
      StoredTensor tensor = request.tensor();
      ample += 4 * (tensor.bytes() + AMPLE_EDGES_BYTES);
      if (request.type().isPresent()) {
        ample += tensor.shape().elements().orElseThrow() * request.type().get().getNumOfBytes();
      }
    }
    if (!Room.has(ample, device)) {
      Room.require(
          mostChanged(requests, false),
          device,
          "load fewer tensors at once (optSelection), or as they are stored");
    }
  }

  /// @param casts whether to count the arrays that the engine makes by casts: it may have their memory
  ///     already
  private MemoryUse mostChanged(List<Request> requests, boolean casts) {
    List<List<Piece>> parts =
        parts(
            requests.stream().map(request -> new Piece(request, 0)).toList(),
            request -> request.tensor().bytes());
    LoadMemory factors =
        memory(
            requests.stream()
                .filter(this::converts)
                .flatMap(request -> scales.scalesOf(request.tensor().name()).stream())
                .toList(),
            settings.transfer());
    List<PipelinedLoad.Part> each =
        parts.stream().map(part -> memory(part, transfer(parts.size()), casts)).toList();
    return session.atOnce(
        factors.most().max(factors.stays().plus(PipelinedLoad.most(each))),
        device,
        settings.transfer());
  }

  private PipelinedLoad.Part memory(List<Piece> part, TransferOptions transfer, boolean casts) {
    long made = 0;
    long madeByEngine = 0;
    boolean madeStays = false;
    for (Piece piece : part) {
      Request request = piece.rows();
      if (changes(request)) {
        DataType type = request.type().orElseThrow();
        if (converts(request)) {
          made = Dequantiser.endOf(made, request.tensor(), type);
          madeStays |= type != DataType.FLOAT64;
        }
        if (casts && (!converts(request) || type == DataType.FLOAT64)) {
          madeByEngine += request.tensor().shape().elements().orElseThrow() * type.getNumOfBytes();
        }
      }
    }
    LoadMemory load = memory(tensors(part), transfer);
    MemoryUse engine = MemoryUse.on(device, madeByEngine);
    return new PipelinedLoad.Part(
        load,
        MemoryUse.on(device, made).plus(engine),
        load.stays(i -> !changes(part.get(i).rows()))
            .plus(MemoryUse.on(device, madeStays ? made : 0))
            .plus(engine));
  }

  /// Whether a [Taker] has taken something.
  boolean hasHandedOver() {
    return !taken.isEmpty();
  }

  /// Tells the settings' listener what was loaded so far.
  synchronized void report() {
    settings.report().accept(report);
  }

  /// An array for each request, with its tensor's name.
  NDList arrays(List<Request> requests) {
    return changesAny(requests)
        ? loadedChanged(requests)
        : loaded(requests.stream().map(Request::tensor).toList(), settings.transfer());
  }

  /// @throws MisuseException if there is no such cast
  boolean changesAny(List<Request> requests) {
    // A list: all of them are asked, so that an impossible cast is refused.
    return requests.stream().map(this::changes).toList().contains(true);
  }

  /// @throws MisuseException if there is no such cast
  private boolean changes(Request request) {
    StoredTensor tensor = request.tensor();
    if (request.type().isEmpty()) {
      return false;
    }
    return switch (Casts.kind(tensor.dtype(), scales.has(tensor.name()))) {
      case CAST -> !PyTorch.dataType(tensor.dtype()).equals(request.type());
      case CONVERT -> true;
      case NONE -> false;
      case IMPOSSIBLE -> throw Casts.impossible(tensor);
    };
  }

  private boolean converts(Request request) {
    return request.type().isPresent()
        && Casts.kind(request.tensor().dtype(), scales.has(request.tensor().name()))
            == Casts.Kind.CONVERT;
  }

  /// Loads and casts part by part: only two slabs of uncast tensors are in memory at a time.
  private NDList loadedChanged(List<Request> requests) {
    requireRoom(requests);
    List<Piece> pieces = requests.stream().map(request -> new Piece(request, 0)).toList();
    NDList arrays = new NDList(requests.size());
    return Cleanup.orUndo(
        () -> {
          eachLoaded(
              pieces,
              dequantiser(requests),
              request -> request.tensor().bytes(),
              () -> {},
              (part, loaded) -> {
                for (int i = 0; i < part.size(); i++) {
                  cast(part.get(i).rows(), loaded, i);
                }
                arrays.addAll(loaded);
                loaded.clear();
              });
          return arrays;
        },
        arrays::close);
  }

  /// Replaces the arrays of quantised values.
  private void convert(List<Piece> part, List<NDArray> loaded, Dequantiser dequantiser) {
    List<Integer> places = new ArrayList<>();
    List<Dequantiser.Task> tasks = new ArrayList<>();
    for (int i = 0; i < part.size(); i++) {
      Request request = part.get(i).rows();
      if (converts(request)) {
        places.add(i);
        tasks.add(
            new Dequantiser.Task(
                request.tensor(),
                part.get(i).first(),
                loaded.get(i),
                request.type().orElseThrow()));
      }
    }
    List<NDArray> results = dequantiser.convert(tasks);
    for (int i = 0; i < results.size(); i++) {
      replace(loaded, places.get(i), results.get(i));
    }
  }

  /// Turns the arrays of these requests into the types that are asked for.
  void change(List<Request> requests, NDList loaded, Dequantiser dequantiser) {
    List<Piece> whole = requests.stream().map(request -> new Piece(request, 0)).toList();
    convert(whole, loaded, dequantiser);
    for (int i = 0; i < requests.size(); i++) {
      cast(requests.get(i), loaded, i);
    }
  }

  private void cast(Request request, List<NDArray> loaded, int place) {
    if (changes(request) && !converts(request)) {
      replace(loaded, place, loaded.get(place).toType(request.type().orElseThrow(), true));
    }
  }

  private static void replace(List<NDArray> arrays, int place, NDArray with) {
    NDArray before = arrays.set(place, with);
    with.setName(before.getName());
    before.close();
  }

  Dequantiser dequantiser(List<Request> requests) {
    List<Request> converted = requests.stream().filter(this::converts).toList();
    return new Dequantiser(
        session,
        manager,
        device,
        settings,
        scales,
        converted.stream().map(Request::tensor).toList(),
        converted.stream()
            .map(request -> request.type().orElseThrow())
            .collect(Collectors.toSet()));
  }

  /// Where tensors go.
  @FunctionalInterface
  public interface Taker {
    /// Takes the values of one tensor, or of some of its rows. They are closed afterwards.
    void take(String tensor, NDArray rows, long firstRow);

    /// The array of the tensor's type and shape that its bytes may be read straight into, instead of a
    /// call of [#take]; empty if there is none.
    default Optional<NDArray> place(StoredTensor tensor) {
      return Optional.empty();
    }

    /// The tensor was read into its [#place].
    default void placed(String tensor) {}
  }

  /// Some rows of a tensor, or all of it.
  ///
  /// @param rows has the tensor's name
  private record Piece(Request rows, long first) {}

  /// Hands all tensors to `taker`, part by part, so that there is never more memory taken for them
  /// than that of two slabs: one that is larger than a slab comes in several pieces. What is more than a
  /// slab is read straight into its place, if it has one: no sooner, so that a failure in the first
  /// slab's bytes changes nothing.
  ///
  /// @throws TransferException as a load does; if some have been taken already, that says so
  public void eachPart(List<StoredTensor> tensors, Taker taker) {
    List<Request> requests =
        tensors.stream().map(tensor -> new Request(tensor, Optional.empty())).toList();
    eachPart(requests, _ -> true, taker, () -> {});
  }

  /// @param splits whether a tensor may come in pieces
  /// @param beforeLast runs when all was read and the last part was not taken yet
  void eachPart(
      List<Request> requests, Predicate<StoredTensor> splits, Taker taker, Runnable beforeLast) {
    List<Request> beside = new ArrayList<>();
    SequencedMap<StoredTensor, NDArray> places = new LinkedHashMap<>();
    long room = settings.transfer().limits().slabBytes();
    for (Request request : requests) {
      Optional<NDArray> place =
          room > 0 || changes(request) ? Optional.empty() : taker.place(request.tensor());
      if (place.isPresent()) {
        places.put(request.tensor(), place.orElseThrow());
      } else {
        beside.add(request);
        room -= memoryBytes(request);
      }
    }
    placedBytes = places.keySet().stream().mapToLong(StoredTensor::bytes).sum();
    takeParts(beside, splits, taker, places.isEmpty() ? beforeLast : () -> {});
    if (!places.isEmpty()) {
      readInto(places, taker, beside.stream().mapToLong(one -> one.tensor().bytes()).sum());
      beforeLast.run();
    }
  }

  /// @param before how many bytes have been loaded before
  private void readInto(SequencedMap<StoredTensor, NDArray> places, Taker taker, long before) {
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
    tensors.keySet().forEach(taker::placed);
  }

  private void takeParts(
      List<Request> requests, Predicate<StoredTensor> splits, Taker taker, Runnable beforeLast) {
    eachLoaded(
        requests.stream().flatMap(request -> pieces(request, splits)).toList(),
        dequantiser(requests),
        this::memoryBytes,
        beforeLast,
        (part, arrays) -> {
          for (int i = 0; i < arrays.size(); i++) {
            Piece piece = part.get(i);
            taker.take(piece.rows().tensor().name(), arrays.get(i), piece.first());
            taken.add(piece.rows().tensor().name());
          }
        });
  }

  /// Uses the arrays of a part, of which quantised ones are converted. Those that it leaves in the list
  /// are closed.
  private interface PartUser {
    void use(List<Piece> part, NDList arrays);
  }

  /// @param memory how many bytes a request takes while it is used
  private void eachLoaded(
      List<Piece> pieces,
      Dequantiser dequantiser,
      ToLongFunction<Request> memory,
      Runnable beforeLast,
      PartUser user) {
    List<List<Piece>> parts = parts(pieces, memory);
    Progress progress = new Progress(parts);
    long begin = System.nanoTime();
    TransferOptions transfer = transfer(parts.size());
    try (dequantiser;
        PipelinedLoad ahead =
            new PipelinedLoad(
                parts.size(),
                i ->
                    loaded(
                        tensors(parts.get(i)),
                        progress
                            .of(i)
                            .withLimits(transfer.limits())
                            .withSlabCapacity(transfer.slabCapacity())))) {
      for (int i = 0; i < parts.size(); i++) {
        try (NDList arrays = next(ahead)) {
          if (i == parts.size() - 1) {
            setElapsed(parts.size(), System.nanoTime() - begin);
            beforeLast.run();
          }
          convert(parts.get(i), arrays, dequantiser);
          user.use(parts.get(i), arrays);
        }
      }
    }
    if (parts.isEmpty()) {
      beforeLast.run();
    }
  }

  /// Several parts have the same memory of a device, one after the other. Beside the tensors of a part, a
  /// slab holds the blocks at their edges: with a second slab for those, a part would take that memory twice.
  private TransferOptions transfer(int parts) {
    TransferOptions transfer = settings.transfer();
    if (parts == 1) {
      return transfer;
    }
    long slab = transfer.limits().slabBytes() + EDGES_BYTES;
    return transfer.withLimits(transfer.limits().withSlabBytes(slab)).withSlabCapacity(slab);
  }

  /// Requests whose tensors fit into a slab together.
  List<List<Request>> slabs(List<Request> requests) {
    return parts(
            requests.stream().map(request -> new Piece(request, 0)).toList(),
            request -> request.tensor().bytes())
        .stream()
        .map(part -> part.stream().map(Piece::rows).toList())
        .toList();
  }

  /// Parts that fit into a slab.
  private List<List<Piece>> parts(List<Piece> pieces, ToLongFunction<Request> memory) {
    long slab = settings.transfer().limits().slabBytes();
    List<List<Piece>> parts = new ArrayList<>();
    long room = 0;
    for (Piece piece : pieces) {
      long bytes = memory.applyAsLong(piece.rows());
      if (parts.isEmpty() || bytes > room) {
        parts.add(new ArrayList<>());
        room = slab;
      }
      parts.getLast().add(piece);
      room -= bytes;
    }
    return parts;
  }

  private NDList next(PipelinedLoad ahead) {
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

  private Stream<Piece> pieces(Request request, Predicate<StoredTensor> splits) {
    StoredTensor tensor = request.tensor();
    long most = settings.transfer().limits().slabBytes();
    long bytes = memoryBytes(request);
    if (bytes <= most || tensor.shape().rank() == 0 || !tensor.isPlain() || !splits.test(tensor)) {
      return Stream.of(new Piece(request, 0));
    }
    long rows = tensor.shape().dimension(0);
    long step = scales.wholeBlocks(tensor, Math.max(1, most / (bytes / rows)));
    return LongStream.iterate(0, first -> first < rows, first -> first + step)
        .mapToObj(first ->
            new Piece(
                new Request(tensor.rows(first, Math.min(rows, first + step)), request.type()),
                first));
  }

  /// What the tensor takes besides the memory that stays: converted ones are there twice.
  private long memoryBytes(Request request) {
    StoredTensor tensor = request.tensor();
    long bytes = tensor.bytes();
    return converts(request) ? bytes + bytes * request.type().orElseThrow().getNumOfBytes() : bytes;
  }

  private static List<StoredTensor> tensors(List<Piece> pieces) {
    return pieces.stream().map(piece -> piece.rows().tensor()).toList();
  }

  /// Tells the settings' listener of all parts' bytes together. A part's reads take the blocks at its
  /// edges too, which do not count.
  private final class Progress {
    private final List<Long> bytes;
    private final long[] done;
    private final long total;

    Progress(List<List<Piece>> parts) {
      bytes =
          parts.stream()
              .map(part -> tensors(part).stream().mapToLong(StoredTensor::bytes).sum())
              .toList();
      done = new long[parts.size()];
      total = bytes.stream().mapToLong(Long::longValue).sum() + placedBytes;
    }

    TransferOptions of(int part) {
      return settings.transfer().withProgress((now, _) -> tell(part, now));
    }

    private synchronized void tell(int part, long now) {
      done[part] = Math.min(now, bytes.get(part));
      settings.transfer().progress().onProgress(LongStream.of(done).sum(), total);
    }
  }

  /// An array for each of `tensors`.
  private NDList loaded(List<StoredTensor> tensors, TransferOptions transfer) {
    NDList arrays = new NDList(tensors.size());
    return Cleanup.orUndo(
        () -> {
          try (LoadedTensors loaded =
              settings.lazy()
                  ? LoadedTensors.map(session, tensors, transfer)
                  : LoadedTensors.load(session, tensors, device, transfer)) {
            wrap(tensors, loaded, arrays);
            add(loaded.report());
          }
          return arrays;
        },
        arrays::close);
  }

  /// Adds an array for each of `tensors`.
  void wrap(List<StoredTensor> tensors, LoadedTensors loaded, NDList arrays) {
    for (int i = 0; i < tensors.size(); i++) {
      arrays.add(wrap(tensors.get(i), loaded.regions().get(i)));
    }
  }

  private synchronized void add(TransferReport part) {
    report = report.plus(part);
  }

  /// Parts overlap, so their times do not add up.
  private synchronized void setElapsed(int parts, long nanos) {
    if (parts > 1) {
      report = report.withElapsed(Duration.ofNanos(nanos));
    }
  }

  private NDArray wrap(StoredTensor info, Region region) {
    boolean held = Casts.isHeld(info.dtype());
    DType dtype = held ? info.dtype() : DType.U8;
    TensorShape shape = held ? info.shape() : TensorShape.of(region.length());
    Runnable release = region.retain();
    return Cleanup.orUndo(
        () ->
            region.isReadOnly()
                ? TorchArrays.wrapReadOnly(
                    manager, region.address(), device, dtype, shape, info.name(), release)
                : TorchArrays.wrap(
                    manager, region.address(), device, dtype, shape, info.name(), release),
        release);
  }
}
