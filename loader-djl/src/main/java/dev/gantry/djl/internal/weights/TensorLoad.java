// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.Shape;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.djl.internal.guard.TorchArrays;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.function.Predicate;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/// One load of tensors as arrays. All or nothing. For one thread.
public final class TensorLoad {
  /// A tensor, and the floating-point type that it becomes.
  ///
  /// @param type empty for the stored one
  record Request(StoredTensor tensor, Optional<DataType> type) {}

  private final GantrySession session;
  private final NDManager manager;
  private final LoadSettings settings;
  private final Device device;
  private final Scales scales;
  private TransferReport report = TransferReport.NOTHING;
  private long taken;

  public TensorLoad(
      GantrySession session, NDManager manager, LoadSettings settings, Scales scales) {
    this.session = session;
    this.manager = manager;
    this.settings = settings;
    this.scales = scales;
    this.device = PyTorch.device(settings.device().orElseGet(manager::getDevice));
    if (settings.lazy() && !device.equals(Device.HOST)) {
      throw new MisuseException(
          "optLazy is for memory of the CPU only (the device was " + device + ")");
    }
  }

  /// Loads all of these at once, in the types that the settings ask for, and tells the settings'
  /// listener.
  public NDList load(SequencedMap<String, StoredTensor> tensors) {
    List<Request> requests = new ArrayList<>();
    for (StoredTensor tensor : tensors.values()) {
      Optional<DataType> type = settings.types().of(tensor.name());
      if (type.isEmpty() || !scales.areOfCast(tensor.name(), settings.types())) {
        requests.add(new Request(tensor, type));
      }
    }
    NDList arrays = arrays(requests);
    boolean complete = false;
    try {
      report();
      complete = true;
      return arrays;
    } finally {
      if (!complete) {
        arrays.close();
      }
    }
  }

  /// Whether a [Taker] has taken something.
  boolean hasHandedOver() {
    return taken > 0;
  }

  /// Tells the settings' listener what was loaded so far.
  void report() {
    settings.report().accept(report);
  }

  /// An array for each request, with its tensor's name.
  NDList arrays(List<Request> requests) {
    NDList arrays = new NDList(requests.size());
    boolean complete = false;
    try {
      // A list: all of them are asked, so that an impossible cast is refused.
      if (requests.stream().map(this::changes).toList().contains(true)) {
        loadChanged(requests, arrays);
      } else {
        loadPart(requests.stream().map(Request::tensor).toList(), arrays, settings.transfer());
      }
      complete = true;
      return arrays;
    } finally {
      if (!complete) {
        arrays.close();
      }
    }
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

  /// Loads and casts part by part: only one part's uncast tensors are in memory at a time.
  private void loadChanged(List<Request> requests, NDList arrays) {
    Progress progress = new Progress(requests);
    try (Dequantiser dequantiser = dequantiser(requests)) {
      int next = 0;
      for (int first = 0; first < requests.size(); first = next) {
        next = endOfPart(requests, first);
        List<Piece> part =
            requests.subList(first, next).stream().map(request -> new Piece(request, 0)).toList();
        loadPart(tensors(part), arrays, progress.of(part));
        List<NDArray> loaded = arrays.subList(first, next);
        convert(part, loaded, dequantiser);
        for (int i = 0; i < part.size(); i++) {
          cast(part.get(i).rows(), loaded, i);
        }
      }
    }
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

  private Dequantiser dequantiser(List<Request> requests) {
    List<StoredTensor> quantised =
        requests.stream().filter(this::converts).map(Request::tensor).toList();
    return new Dequantiser(session, manager, device, settings, scales, quantised);
  }

  /// Takes the values of one tensor, or of some of its rows. They are closed afterwards.
  @FunctionalInterface
  public interface Taker {
    void take(String tensor, NDArray rows, long firstRow);
  }

  /// Some rows of a tensor, or all of it.
  ///
  /// @param rows has the tensor's name
  private record Piece(Request rows, long first) {}

  /// Hands all tensors to `taker`, part by part, so that there is never more memory taken for them
  /// than that of a slab: one that is larger comes in several pieces.
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
    List<Piece> pieces = requests.stream().flatMap(request -> pieces(request, splits)).toList();
    List<Request> parts = pieces.stream().map(Piece::rows).toList();
    Progress progress = new Progress(requests);
    try (Dequantiser dequantiser = dequantiser(requests)) {
      int next = 0;
      for (int first = 0; first < parts.size(); first = next) {
        next = endOfPart(parts, first);
        List<Piece> part = pieces.subList(first, next);
        try (NDList arrays = new NDList()) {
          loadAfterOthers(tensors(part), arrays, progress.of(part));
          if (next == parts.size()) {
            beforeLast.run();
          }
          convert(part, arrays, dequantiser);
          for (int i = 0; i < arrays.size(); i++) {
            Piece piece = part.get(i);
            taker.take(piece.rows().tensor().name(), arrays.get(i), piece.first());
            taken++;
          }
        }
      }
    }
    if (parts.isEmpty()) {
      beforeLast.run();
    }
  }

  private void loadAfterOthers(List<StoredTensor> part, NDList arrays, TransferOptions transfer) {
    try {
      loadPart(part, arrays, transfer);
    } catch (TransferException failed) {
      if (taken == 0) {
        throw failed;
      }
      throw new TransferException(
          "loading in place",
          taken
              + " tensors have been copied to where they go and the others have not: load or"
              + " restore again before these are used; "
              + failed.getMessage(),
          failed.failure(),
          failed);
    }
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

  private int endOfPart(List<Request> requests, int first) {
    long room = settings.transfer().limits().slabBytes();
    int next = first;
    do {
      room -= memoryBytes(requests.get(next));
      next++;
    } while (next < requests.size() && room >= memoryBytes(requests.get(next)));
    return next;
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

  /// Tells the settings' listener of each part as a part of the whole. A part's reads take the blocks
  /// at its edges too, which must not count: the next part would begin below them.
  private final class Progress {
    private final long total;
    private long before;

    Progress(List<Request> requests) {
      total = bytes(requests);
    }

    TransferOptions of(List<Piece> part) {
      long start = before;
      long bytes = bytes(part.stream().map(Piece::rows).toList());
      before += bytes;
      ProgressListener listener = settings.transfer().progress();
      return settings
          .transfer()
          .withProgress((done, _) -> listener.onProgress(start + Math.min(done, bytes), total));
    }

    private static long bytes(List<Request> requests) {
      return requests.stream().mapToLong(request -> request.tensor().bytes()).sum();
    }
  }

  /// Appends an array for each of `infos`.
  private void loadPart(List<StoredTensor> infos, NDList arrays, TransferOptions transfer) {
    try (LoadedTensors loaded =
        settings.lazy()
            ? LoadedTensors.map(session, infos, transfer)
            : LoadedTensors.load(session, infos, device, transfer)) {
      for (int i = 0; i < infos.size(); i++) {
        arrays.add(wrap(infos.get(i), loaded.regions().get(i)));
      }
      report = report.plus(loaded.report());
    }
  }

  private NDArray wrap(StoredTensor info, Region region) {
    boolean held = Casts.isHeld(info.dtype());
    DType dtype = held ? info.dtype() : DType.U8;
    Shape shape = held ? info.shape() : Shape.of(region.length());
    Runnable release = region.retain();
    boolean complete = false;
    try {
      NDArray array =
          TorchArrays.wrap(manager, region.address(), device, dtype, shape, info.name(), release);
      complete = true;
      return array;
    } finally {
      if (!complete) {
        release.run();
      }
    }
  }
}
