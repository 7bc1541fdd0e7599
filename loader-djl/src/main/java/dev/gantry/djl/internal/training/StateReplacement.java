// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// Replaces an optimizer's arrays by restored ones. It allocates all memory before it changes
/// anything. If you close it before [#apply], it frees that memory; arrays that the optimizer had
/// already may hold some of the restored values then.
public final class StateReplacement implements AutoCloseable {
  private final TrainerParts parts;
  private final List<NDArray> created = new ArrayList<>();
  private final Map<String, Map<Device, NDArray>> targets = new HashMap<>();
  private final List<Runnable> exchanges = new ArrayList<>();

  StateReplacement(TrainerParts parts) {
    this.parts = parts;
  }

  /// Plans that from [#apply] on, the optimizer's state of a parameter is an array of this kind on each
  /// device that the optimizer updates; if `kind` is null, that it has no such state.
  ///
  /// @param key what [#targets()] calls it
  void plan(OptimizerKind.State state, String key, String parameterId, @Nullable ArrayKind kind) {
    Map<String, Map<Device, NDArray>> byId = state.arrays().get(parts.optimizer());
    Map<Device, NDArray> before = byId.getOrDefault(parameterId, Map.of());
    if (kind == null) {
      exchanges.add(() -> {
        byId.remove(parameterId);
        before.values().forEach(NDArray::close);
      });
      return;
    }
    Map<Device, NDArray> after = new ConcurrentHashMap<>();
    for (Device device : parts.updatedDevices()) {
      NDArray existing = before.get(device);
      after.put(device, existing == null ? create(kind, device) : existing);
    }
    targets.put(key, after);
    exchanges.add(() -> {
      byId.put(parameterId, after);
      before.forEach((device, array) -> {
        if (!after.containsKey(device)) {
          array.close();
        }
      });
    });
  }

  void plan(Runnable exchange) {
    exchanges.add(exchange);
  }

  /// The arrays that the optimizer gets by [#apply], by their keys, such as `means/01Linear_weight`; it may use some
  /// of these already.
  Map<String, Collection<NDArray>> targets() {
    Map<String, Collection<NDArray>> all = new HashMap<>();
    targets.forEach((key, byDevice) -> all.put(key, byDevice.values()));
    return all;
  }

  /// Returns the arrays of [#targets()] on one device, as far as it has any.
  ///
  /// @param device its number among the trainer's
  Map<String, NDArray> targets(int device) {
    Map<String, NDArray> all = new HashMap<>();
    targets.forEach((key, byDevice) -> {
      NDArray target = byDevice.get(parts.devices().get(device));
      if (target != null) {
        all.put(key, target);
      }
    });
    return all;
  }

  /// Gives all arrays to the optimizer. Call it when [#targets()] have all values.
  public void apply() {
    exchanges.forEach(Runnable::run);
    created.clear();
  }

  @Override
  public void close() {
    created.forEach(NDArray::close);
  }

  /// An array that belongs to the optimizer alone, as those that DJL makes in its first step: the
  /// optimizer may outlive the trainer.
  private NDArray create(ArrayKind kind, Device device) {
    NDArray array = TorchArrays.create(parts.trainer().getManager(), kind, device);
    created.add(array);
    return array;
  }
}
