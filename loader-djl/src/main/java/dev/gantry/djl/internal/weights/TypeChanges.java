// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.Device;
import dev.gantry.core.GantryException;
import dev.gantry.core.internal.convert.Dequantisation;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Gives loaded arrays the types that were asked for, on their device. Only one thread may use an
/// instance.
final class TypeChanges {
  private static final long ALIGNMENT_BYTES = 512;

  private final GantrySession session;
  private final NDManager manager;
  private final Device device;
  private final LoadSettings settings;

  /// @param requests all requests of the load, for which kernels are prepared
  TypeChanges(
      GantrySession session,
      NDManager manager,
      Device device,
      LoadSettings settings,
      List<TensorRequest> requests) {
    this.session = session;
    this.manager = manager;
    this.device = device;
    this.settings = settings;
    prepare(requests.stream().filter(TensorRequest::isConverted).toList());
  }

  /// Has the driver compile the kernels while the first part is being read.
  private void prepare(List<TensorRequest> converted) {
    if (!converted.isEmpty() && device instanceof Device.Cuda) {
      Thread _ =
          Thread.ofPlatform()
              .daemon()
              .name("gantry-kernels")
              .start(() -> {
                try {
                  converted.forEach(one -> session.prepareConversion(one.dequantisation(), device));
                } catch (GantryException _) {
                  // The conversion meets the same failure and reports it.
                }
              });
    }
  }

  /// Replaces arrays by arrays that libtorch casts.
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

  /// Replaces the arrays of each quantised tensor's inputs by one array of its values. The new
  /// arrays share a slab, as the arrays of a load do, and belong to the manager.
  void convert(List<TensorRequest> requests, NDList arrays) {
    List<Optional<Dequantisation>> whats =
        requests.stream()
            .map(one ->
                one.isConverted()
                    ? Optional.of(one.dequantisation())
                    : Optional.<Dequantisation>empty())
            .toList();
    if (whats.stream().noneMatch(Optional::isPresent)) {
      return;
    }
    long end = 0;
    for (Optional<Dequantisation> what : whats) {
      end = what.isPresent() ? endOf(end, what.orElseThrow()) : end;
    }
    Slab slab = end == 0 ? null : allocate(end);
    List<NDArray> results = new ArrayList<>();
    Cleanup.orUndo(
        () -> convert(requests, whats, arrays, slab, results), () -> closeBut(arrays, results));
    List<NDArray> inputs = new ArrayList<>(arrays);
    arrays.clear();
    arrays.addAll(results);
    closeBut(results, inputs);
  }

  /// Closes arrays that are not in another list. The lists are compared by identity, since
  /// equality of arrays compares their values.
  private static void closeBut(List<NDArray> kept, List<NDArray> arrays) {
    Set<NDArray> others = Collections.newSetFromMap(new IdentityHashMap<>());
    others.addAll(kept);
    arrays.stream().filter(array -> !others.contains(array)).forEach(NDArray::close);
  }

  /// @param whats the computation of each request's values; empty for requests that are not
  ///     converted
  /// @param slab the slab for the results; null if they have no bytes
  /// @param results receives an array for each request, in their order
  private void convert(
      List<TensorRequest> requests,
      List<Optional<Dequantisation>> whats,
      NDList arrays,
      @Nullable Slab slab,
      List<NDArray> results) {
    try {
      List<Dequantisation.Task> tasks = new ArrayList<>();
      long end = 0;
      int next = 0;
      for (int i = 0; i < requests.size(); i++) {
        TensorRequest request = requests.get(i);
        int count = request.inputs().size();
        List<NDArray> inputs = arrays.subList(next, next + count);
        next += count;
        if (whats.get(i).isEmpty()) {
          results.add(inputs.getFirst());
          continue;
        }
        Dequantisation what = whats.get(i).orElseThrow();
        end = endOf(end, what);
        Region region = new Region(slab, end - what.targetBytes(), what.targetBytes());
        StoredTensor tensor = request.tensor();
        results.add(
            TorchArrays.over(manager, region, device, what.to(), tensor.shape(), tensor.name()));
        if (region.length() > 0) {
          tasks.add(
              new Dequantisation.Task(
                  what, inputs.stream().map(TorchArrays::address).toList(), region.address()));
        }
      }
      if (!tasks.isEmpty()) {
        session.convert(tasks, device, settings.transfer().cancellation());
      }
      for (int i = 0; i < results.size(); i++) {
        if (requests.get(i).isConverted() && requests.get(i).isDouble()) {
          results.set(i, widened(results.get(i)));
        }
      }
    } finally {
      if (slab != null) {
        slab.release();
      }
    }
  }

  private static NDArray widened(NDArray floats) {
    try (floats) {
      NDArray doubles = floats.toType(DataType.FLOAT64, true);
      doubles.setName(floats.getName());
      return doubles;
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
  /// @param end the end of the result before, in bytes
  private static long endOf(long end, Dequantisation what) {
    return Math.addExact(Math.ceilDiv(end, ALIGNMENT_BYTES) * ALIGNMENT_BYTES, what.targetBytes());
  }
}
