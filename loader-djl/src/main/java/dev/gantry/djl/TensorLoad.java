// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

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
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/// One load of tensors as arrays. All or nothing.
final class TensorLoad {
  private final GantrySession session;
  private final NDManager manager;
  private final LoadOptions options;
  private final Device device;
  private TransferReport report = TransferReport.NOTHING;
  private long taken;

  TensorLoad(GantrySession session, NDManager manager, LoadOptions options) {
    this.session = session;
    this.manager = manager;
    this.options = options;
    this.device = PyTorch.device(options.device().orElseGet(manager::getDevice));
    if (options.lazy() && !device.equals(Device.HOST)) {
      throw new MisuseException("only memory of the CPU can be loaded lazily, not of " + device);
    }
  }

  /// Loads all of these at once, and says so.
  NDList load(SequencedMap<String, StoredTensor> tensors) {
    NDList arrays = arrays(List.copyOf(tensors.values()), options.cast());
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

  /// Tells the options' listener what was loaded so far.
  void report() {
    options.report().accept(report);
  }

  /// An array for each tensor, with its name.
  ///
  /// @param cast what floating-point tensors become, if that is wanted
  NDList arrays(List<StoredTensor> infos, Optional<DataType> cast) {
    NDList arrays = new NDList(infos.size());
    boolean complete = false;
    try {
      if (cast.isPresent() && isNeeded(infos, cast.orElseThrow())) {
        loadCast(infos, arrays, cast.orElseThrow());
      } else {
        loadPart(infos, arrays, options.transfer());
      }
      complete = true;
      return arrays;
    } finally {
      if (!complete) {
        arrays.close();
      }
    }
  }

  private static boolean isNeeded(List<StoredTensor> infos, DataType target) {
    boolean needed = false;
    for (StoredTensor info : infos) {
      needed |= Casts.concerns(info) && !PyTorch.dataType(info.dtype()).equals(Optional.of(target));
    }
    return needed;
  }

  /// Loads and casts part by part: only one part's uncast tensors are in memory at a time.
  private void loadCast(List<StoredTensor> infos, NDList arrays, DataType target) {
    long total = bytes(infos);
    long before = 0;
    int first = 0;
    while (first < infos.size()) {
      int next = endOfPart(infos, first);
      List<StoredTensor> part = infos.subList(first, next);
      long bytes = bytes(part);
      loadPart(part, arrays, partOf(before, bytes, total));
      for (int i = first; i < next; i++) {
        if (Casts.concerns(infos.get(i))) {
          arrays.set(i, cast(arrays.get(i), target));
        }
      }
      before += bytes;
      first = next;
    }
  }

  /// Takes the values of one tensor, or of some of its rows. They are closed afterwards.
  interface Taker {
    void take(String tensor, NDArray rows, long firstRow);
  }

  /// Some rows of a tensor, or all of it.
  private record Piece(StoredTensor rows, long first) {}

  /// Hands all tensors to `taker`, part by part, so that there is never more memory taken for them
  /// than that of a slab: one that is larger comes in several pieces.
  ///
  /// @throws TransferException as a load does; if some have been taken already, that says so
  void eachPart(List<StoredTensor> infos, Taker taker) {
    eachPart(infos, taker, () -> {});
  }

  /// @param beforeLast runs when all was read and the last part was not taken yet
  void eachPart(List<StoredTensor> infos, Taker taker, Runnable beforeLast) {
    List<Piece> pieces = infos.stream().flatMap(this::pieces).toList();
    List<StoredTensor> parts = pieces.stream().map(Piece::rows).toList();
    long total = bytes(infos);
    long before = 0;
    int next = 0;
    for (int first = 0; first < parts.size(); first = next) {
      next = endOfPart(parts, first);
      List<StoredTensor> part = parts.subList(first, next);
      try (NDList arrays = new NDList()) {
        loadAfterOthers(part, arrays, partOf(before, bytes(part), total));
        if (next == parts.size()) {
          beforeLast.run();
        }
        for (int i = 0; i < arrays.size(); i++) {
          taker.take(part.get(i).name(), arrays.get(i), pieces.get(first + i).first());
          taken++;
        }
      }
      before += bytes(part);
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

  private Stream<Piece> pieces(StoredTensor info) {
    long most = options.transfer().limits().slabBytes();
    long bytes = info.bytes();
    if (bytes <= most || info.shape().rank() == 0 || !info.isPlain()) {
      return Stream.of(new Piece(info, 0));
    }
    long rows = info.shape().dimension(0);
    long step = Math.max(1, most / (bytes / rows));
    return LongStream.iterate(0, first -> first < rows, first -> first + step)
        .mapToObj(first -> new Piece(info.rows(first, Math.min(rows, first + step)), first));
  }

  private int endOfPart(List<StoredTensor> infos, int first) {
    long room = options.transfer().limits().slabBytes();
    int next = first;
    do {
      room -= infos.get(next).bytes();
      next++;
    } while (next < infos.size() && room >= infos.get(next).bytes());
    return next;
  }

  private static long bytes(List<StoredTensor> infos) {
    return infos.stream().mapToLong(info -> info.bytes()).sum();
  }

  /// The options with a listener that hears of this part as a part of the whole. A part's reads
  /// take the blocks at its edges too, which must not count: the next part would begin below them.
  private TransferOptions partOf(long before, long bytes, long total) {
    ProgressListener listener = options.transfer().progress();
    return options
        .transfer()
        .withProgress((done, _) -> listener.onProgress(before + Math.min(done, bytes), total));
  }

  private static NDArray cast(NDArray array, DataType target) {
    if (array.getDataType() == target) {
      return array;
    }
    NDArray result = array.toType(target, true);
    result.setName(array.getName());
    array.close();
    return result;
  }

  /// Appends an array for each of `infos`.
  private void loadPart(List<StoredTensor> infos, NDList arrays, TransferOptions transfer) {
    try (LoadedTensors loaded =
        options.lazy()
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
