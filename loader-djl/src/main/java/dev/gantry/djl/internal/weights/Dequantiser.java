// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.GantryException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.convert.Conversion;
import dev.gantry.core.internal.convert.ScaleGrid;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.Collectors;

/// Turns quantised values into floating-point ones, on their device. Holds the scales until it is
/// closed. For one thread.
final class Dequantiser implements AutoCloseable {
  /// Where a tensor's scales lie, and which element has which.
  private record Scaled(ScaleGrid grid, DType type, long address) {}

  /// Some rows of a tensor whose values become floating-point ones.
  ///
  /// @param rows the tensor, or some of its rows
  /// @param values the stored bytes
  record Task(StoredTensor rows, long firstRow, NDArray values, DataType type) {}

  private static final long ALIGNMENT_BYTES = 512;

  private final GantrySession session;
  private final NDManager manager;
  private final Device device;
  private final LoadSettings settings;
  private final LoadedTensors loaded;
  private final Map<String, Scaled> scaled = new HashMap<>();

  /// Loads the scales.
  ///
  /// @param tensors that will be converted, whole
  /// @param targets the types that they become
  /// @throws MisuseException if scales do not fit their tensor
  Dequantiser(
      GantrySession session,
      NDManager manager,
      Device device,
      LoadSettings settings,
      Scales scales,
      List<StoredTensor> tensors,
      Set<DataType> targets) {
    this.session = session;
    this.manager = manager;
    this.device = device;
    this.settings = settings;
    SequencedMap<String, ScaleGrid> grids = new LinkedHashMap<>();
    List<StoredTensor> needed = new ArrayList<>();
    for (StoredTensor tensor : tensors) {
      scales
          .scalesOf(tensor.name())
          .filter(_ -> !grids.containsKey(tensor.name()))
          .ifPresent(scale -> {
            grids.put(tensor.name(), scales.grid(tensor));
            needed.add(scale);
          });
    }
    prepare(targets);
    loaded =
        LoadedTensors.load(session, needed, device, settings.transfer().withProgress((_, _) -> {}));
    int next = 0;
    for (Map.Entry<String, ScaleGrid> entry : grids.entrySet()) {
      scaled.put(
          entry.getKey(),
          new Scaled(
              entry.getValue(), needed.get(next).dtype(), loaded.regions().get(next).address()));
      next++;
    }
  }

  /// Has the driver compile the kernels while the first part is being read.
  private void prepare(Set<DataType> targets) {
    if (!targets.isEmpty() && device instanceof Device.Cuda) {
      Set<DType> made = targets.stream().map(Dequantiser::target).collect(Collectors.toSet());
      Thread _ =
          Thread.ofPlatform()
              .daemon()
              .name("gantry-kernels")
              .start(() -> {
                try {
                  made.forEach(type -> session.prepareConversions(type, device));
                } catch (GantryException _) {
                  // The conversion says what is wrong.
                }
              });
    }
  }

  /// An array for each task, with the shape of its rows; neighbours share memory, as those of a load
  /// do. They belong to the manager.
  List<NDArray> convert(List<Task> tasks) {
    long[] offsets = new long[tasks.size()];
    long end = 0;
    for (int i = 0; i < offsets.length; i++) {
      end = endOf(end, tasks.get(i).rows(), tasks.get(i).type());
      offsets[i] = end - bytes(tasks.get(i));
    }
    if (end == 0) {
      return tasks.stream().map(task -> wrap(task, new Region(null, 0, 0))).toList();
    }
    Slab slab = allocate(end);
    List<NDArray> results = new ArrayList<>();
    boolean complete = false;
    try {
      List<Conversion.Task> conversions = new ArrayList<>();
      for (int i = 0; i < offsets.length; i++) {
        Region region = new Region(slab, offsets[i], bytes(tasks.get(i)));
        results.add(wrap(tasks.get(i), region));
        if (region.length() > 0) {
          conversions.add(conversion(tasks.get(i), region.address()));
        }
      }
      session.convert(conversions, device, settings.transfer().cancellation());
      for (int i = 0; i < offsets.length; i++) {
        if (tasks.get(i).type() == DataType.FLOAT64) {
          try (NDArray floats = results.get(i)) {
            results.set(i, floats.toType(DataType.FLOAT64, true));
          }
        }
      }
      complete = true;
      return results;
    } finally {
      if (!complete) {
        results.forEach(NDArray::close);
      }
      slab.release();
    }
  }

  private Slab allocate(long bytes) {
    return switch (device) {
      case Device.Host _ -> HostMemory.allocate(bytes);
      case Device.Cuda cuda -> DeviceSlab.allocate(CudaContext.of(cuda), bytes);
    };
  }

  /// Where one more result ends in the memory of a part's results.
  ///
  /// @param end of the result before
  static long endOf(long end, StoredTensor rows, DataType type) {
    return Math.addExact(Math.ceilDiv(end, ALIGNMENT_BYTES) * ALIGNMENT_BYTES, bytes(rows, type));
  }

  private static long bytes(Task task) {
    return bytes(task.rows(), task.type());
  }

  private static long bytes(StoredTensor rows, DataType type) {
    return Math.multiplyExact(
        rows.shape().elements().orElseThrow(), target(type).bits() / Byte.SIZE);
  }

  private NDArray wrap(Task task, Region region) {
    Runnable release = region.retain();
    return Cleanup.orUndo(
        () ->
            TorchArrays.wrap(
                manager,
                region.address(),
                device,
                target(task.type()),
                task.rows().shape(),
                null,
                release),
        release);
  }

  /// Conversions make no F64: F32 holds all of their values.
  private static DType target(DataType type) {
    return type == DataType.FLOAT64 ? DType.F32 : PyTorch.dtype(type);
  }

  private Conversion.Task conversion(Task task, long target) {
    StoredTensor rows = task.rows();
    long source = TorchArrays.address(task.values());
    Scaled scales = scaled.get(rows.name());
    if (scales == null) {
      Conversion plain =
          Conversion.plain(
              rows.dtype(), target(task.type()), rows.shape().elements().orElseThrow());
      return new Conversion.Task(plain, source, 0, target);
    }
    long skipped = skippedScales(scales.grid(), rows, task.firstRow());
    return new Conversion.Task(
        new Conversion(rows.dtype(), target(task.type()), part(scales.grid(), rows), scales.type()),
        source,
        scales.address() + skipped * (scales.type().bits() / Byte.SIZE),
        target);
  }

  /// The grid of some rows, which begin where a block begins.
  private static ScaleGrid part(ScaleGrid whole, StoredTensor rows) {
    long elements = rows.shape().elements().orElseThrow();
    if (elements == whole.elements()) {
      return whole;
    }
    if (whole.scales() == 1) {
      return ScaleGrid.single(elements);
    }
    long matrix = whole.rows() * whole.columns();
    return whole.matrices() > 1
        ? new ScaleGrid(
            elements / matrix,
            whole.rows(),
            whole.columns(),
            whole.blockRows(),
            whole.blockColumns())
        : new ScaleGrid(
            1,
            elements / whole.columns(),
            whole.columns(),
            whole.blockRows(),
            whole.blockColumns());
  }

  private static long skippedScales(ScaleGrid grid, StoredTensor rows, long firstRow) {
    if (firstRow == 0 || grid.scales() == 1) {
      return 0;
    }
    long firstElement =
        firstRow * (rows.shape().elements().orElseThrow() / rows.shape().dimension(0));
    long firstGridRow = firstElement / grid.columns();
    return grid.matrices() > 1
        ? firstGridRow / grid.rows() * grid.scaleRows() * grid.scaleColumns()
        : firstGridRow / grid.blockRows() * grid.scaleColumns();
  }

  @Override
  public void close() {
    loaded.close();
  }
}
