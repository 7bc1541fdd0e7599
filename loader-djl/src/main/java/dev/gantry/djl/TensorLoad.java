package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Gantry;
import dev.gantry.core.Loaded;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Region;
import dev.gantry.core.Shape;
import dev.gantry.core.io.ProgressListener;
import dev.gantry.core.io.TransferOptions;
import dev.gantry.core.io.TransferReport;
import dev.gantry.core.plan.Wanted;
import dev.gantry.djl.internal.PyTorch;
import dev.gantry.djl.internal.TorchArrays;
import dev.gantry.formats.safetensors.TensorInfo;
import java.util.List;
import java.util.SequencedMap;

/// One load of tensors as arrays. All or nothing.
final class TensorLoad {
  private final Gantry session;
  private final NDManager manager;
  private final LoadOptions options;
  private final Device device;

  TensorLoad(Gantry session, NDManager manager, LoadOptions options) {
    this.session = session;
    this.manager = manager;
    this.options = options;
    this.device = PyTorch.device(options.device().orElseGet(manager::getDevice));
    if (options.lazy() && !device.equals(Device.HOST)) {
      throw new MisuseException("only memory of the CPU can be loaded lazily, not of " + device);
    }
  }

  NDList load(SequencedMap<String, TensorInfo> tensors) {
    List<TensorInfo> infos = List.copyOf(tensors.values());
    if (options.cast().isPresent()) {
      infos.forEach(Casts::concerns);
    }
    NDList arrays = new NDList(infos.size());
    boolean complete = false;
    try {
      TransferReport report =
          options.cast().isPresent()
              ? loadCast(infos, arrays)
              : loadPart(infos, arrays, options.transfer());
      options.report().accept(report);
      complete = true;
      return arrays;
    } finally {
      if (!complete) {
        arrays.close();
      }
    }
  }

  /// Loads and casts part by part, so that the memory for what is cast from is a part's, not the
  /// checkpoint's.
  private TransferReport loadCast(List<TensorInfo> infos, NDList arrays) {
    DataType target = options.cast().orElseThrow();
    long total = bytes(infos);
    TransferReport report = TransferReport.NOTHING;
    long before = 0;
    int first = 0;
    while (first < infos.size()) {
      int next = endOfPart(infos, first);
      List<TensorInfo> part = infos.subList(first, next);
      long bytes = bytes(part);
      report = report.plus(loadPart(part, arrays, partOf(before, bytes, total)));
      for (int i = first; i < next; i++) {
        if (Casts.concerns(infos.get(i))) {
          arrays.set(i, cast(arrays.get(i), target));
        }
      }
      before += bytes;
      first = next;
    }
    return report;
  }

  private int endOfPart(List<TensorInfo> infos, int first) {
    long room = options.transfer().limits().slabBytes();
    int next = first;
    do {
      room -= infos.get(next).extent().length();
      next++;
    } while (next < infos.size() && room >= infos.get(next).extent().length());
    return next;
  }

  private static long bytes(List<TensorInfo> infos) {
    return infos.stream().mapToLong(info -> info.extent().length()).sum();
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
  private TransferReport loadPart(List<TensorInfo> infos, NDList arrays, TransferOptions transfer) {
    List<Wanted> wanted = infos.stream().map(TensorInfo::wanted).toList();
    try (Loaded loaded =
        options.lazy() ? session.map(wanted) : session.load(wanted, device, transfer)) {
      for (int i = 0; i < infos.size(); i++) {
        arrays.add(wrap(infos.get(i), loaded.regions().get(i)));
      }
      return loaded.report();
    }
  }

  private NDArray wrap(TensorInfo info, Region region) {
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
