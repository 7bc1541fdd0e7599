// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.GantryException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.convert.Conversion;
import dev.gantry.core.internal.convert.ScaleGrid;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;

/// Gives loaded arrays the types that were asked for, on their device. Holds the scales of quantised
/// tensors until it is closed. For one thread.
final class TypeChanges implements AutoCloseable {
  /// A tensor's scales: their address, and which element has which scale.
  private record Scaled(ScaleGrid grid, DType type, long address) {}

  private static final long ALIGNMENT_BYTES = 512;

  private final GantrySession session;
  private final NDManager manager;
  private final Device device;
  private final LoadSettings settings;
  private final LoadedTensors loaded;
  private final Map<String, Scaled> scaled = new HashMap<>();

  /// Loads the scales of tensors that are converted.
  ///
  /// @param requests whole tensors
  /// @throws MisuseException if scales do not fit their tensor
  TypeChanges(
      GantrySession session,
      NDManager manager,
      Device device,
      LoadSettings settings,
      Scales scales,
      List<TensorRequest> requests) {
    this.session = session;
    this.manager = manager;
    this.device = device;
    this.settings = settings;
    SequencedMap<String, ScaleGrid> grids = new LinkedHashMap<>();
    List<StoredTensor> needed = new ArrayList<>();
    Set<DType> made = EnumSet.noneOf(DType.class);
    for (TensorRequest request : requests) {
      StoredTensor tensor = request.tensor();
      if (request.isConverted()) {
        made.add(target(request));
        scales
            .scalesOf(tensor.name())
            .filter(_ -> !grids.containsKey(tensor.name()))
            .ifPresent(scale -> {
              grids.put(tensor.name(), scales.grid(tensor));
              needed.add(scale);
            });
      }
    }
    prepare(made);
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
  private void prepare(Set<DType> made) {
    if (!made.isEmpty() && device instanceof Device.Cuda) {
      Thread _ =
          Thread.ofPlatform()
              .daemon()
              .name("gantry-kernels")
              .start(() -> {
                try {
                  made.forEach(type -> session.prepareConversions(type, device));
                } catch (GantryException _) {
                  // The conversion itself will say what is wrong.
                }
              });
    }
  }

  /// Casts arrays by libtorch, and replaces them.
  static void cast(List<TensorRequest> requests, NDList arrays) {
    for (int i = 0; i < requests.size(); i++) {
      TensorRequest request = requests.get(i);
      if (request.changes() && !request.isConverted()) {
        replace(arrays, i, arrays.get(i).toType(request.type().orElseThrow(), true));
      }
    }
  }

  private static void replace(NDList arrays, int place, NDArray with) {
    NDArray before = arrays.set(place, with);
    with.setName(before.getName());
    before.close();
  }

  /// Replaces the arrays of quantised values by floating-point ones; neighbours share memory, as those of a
  /// load do. They belong to the manager.
  void convert(List<TensorRequest> requests, NDList arrays) {
    long end = 0;
    for (TensorRequest rows : requests) {
      end = rows.isConverted() ? endOf(end, rows) : end;
    }
    Slab slab = end == 0 ? null : allocate(end);
    Map<Integer, NDArray> results = new LinkedHashMap<>();
    try {
      List<Conversion.Task> conversions = new ArrayList<>();
      end = 0;
      for (int i = 0; i < requests.size(); i++) {
        TensorRequest rows = requests.get(i);
        if (rows.isConverted()) {
          end = endOf(end, rows);
          Region region = new Region(slab, end - bytes(rows), bytes(rows));
          results.put(
              i,
              TorchArrays.over(manager, region, device, target(rows), rows.tensor().shape(), null));
          if (region.length() > 0) {
            conversions.add(conversion(rows, arrays.get(i), region.address()));
          }
        }
      }
      if (!conversions.isEmpty()) {
        session.convert(conversions, device, settings.transfer().cancellation());
      }
      results.replaceAll((i, floats) -> requests.get(i).isDouble() ? widened(floats) : floats);
      results.forEach((i, result) -> replace(arrays, i, result));
      results.clear();
    } finally {
      results.values().forEach(NDArray::close);
      if (slab != null) {
        slab.release();
      }
    }
  }

  private static NDArray widened(NDArray floats) {
    try (floats) {
      return floats.toType(DataType.FLOAT64, true);
    }
  }

  private Slab allocate(long bytes) {
    return switch (device) {
      case Device.Host _ -> Admission.slab(bytes);
      case Device.Cuda cuda -> DeviceSlab.allocate(CudaContext.of(cuda), bytes);
    };
  }

  /// Returns the offset at which one more result ends in the memory of a part's results, in bytes.
  ///
  /// @param end of the result before
  private static long endOf(long end, TensorRequest rows) {
    return Math.addExact(Math.ceilDiv(end, ALIGNMENT_BYTES) * ALIGNMENT_BYTES, bytes(rows));
  }

  private static long bytes(TensorRequest rows) {
    return Math.multiplyExact(
        rows.tensor().shape().elements().orElseThrow(), target(rows).bits() / Byte.SIZE);
  }

  /// The type that a conversion makes: F32 instead of F64, since it holds all of their values.
  private static DType target(TensorRequest rows) {
    return rows.isDouble() ? DType.F32 : PyTorch.dtype(rows.type().orElseThrow());
  }

  private Conversion.Task conversion(TensorRequest request, NDArray values, long target) {
    StoredTensor rows = request.tensor();
    DType type = target(request);
    long source = TorchArrays.address(values);
    Scaled scales = scaled.get(rows.name());
    if (scales == null) {
      Conversion plain =
          Conversion.plain(rows.dtype(), type, rows.shape().elements().orElseThrow());
      return new Conversion.Task(plain, source, 0, target);
    }
    return new Conversion.Task(
        new Conversion(rows.dtype(), type, scales.grid(), scales.type()),
        source,
        scales.address(),
        target);
  }

  @Override
  public void close() {
    loaded.close();
  }
}
