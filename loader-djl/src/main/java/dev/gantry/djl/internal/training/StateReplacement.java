// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// Replaces an optimizer's arrays by restored arrays. All memory is allocated before any array of
/// the optimizer changes. Closing an instance before [#apply] frees that memory; arrays that the
/// optimizer had already may hold some of the restored values then.
public final class StateReplacement implements AutoCloseable {
  private final TrainerParts parts;
  private final List<NDArray> created = new ArrayList<>();
  private final Map<String, Map<Device, NDArray>> targets = new HashMap<>();
  private final List<Runnable> exchanges = new ArrayList<>();

  StateReplacement(TrainerParts parts) {
    this.parts = parts;
  }

  /// Plans that [#apply] sets the optimizer's state of a parameter to an array of this kind on
  /// each device that the optimizer updates, or removes the state if `kind` is null.
  ///
  /// @param key the key of the state in [#targets()]
  void plan(OptimizerKind.State state, String key, String parameterId, @Nullable ArrayKind kind) {
    Map<String, Map<Device, NDArray>> byId = state.arrays().get(parts.optimizer());
    Map<Device, NDArray> before = byId.getOrDefault(parameterId, Map.of());
    if (kind == null) {
      exchanges.add(() -> {
        byId.remove(parameterId);
        Cleanup.forEach(before.values(), NDArray::close);
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

  /// The arrays that [#apply] gives to the optimizer, by their keys, such as
  /// `means/01Linear_weight`. The optimizer may use some of them already.
  Map<String, Collection<NDArray>> targets() {
    Map<String, Collection<NDArray>> all = new HashMap<>();
    targets.forEach((key, byDevice) -> all.put(key, byDevice.values()));
    return all;
  }

  /// Returns those arrays of [#targets()] that are on one device.
  ///
  /// @param device the device's index among the trainer's devices
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

  /// Gives all arrays to the optimizer. Call this after all [#targets()] have their values.
  public void apply() {
    exchanges.forEach(Runnable::run);
    created.clear();
  }

  @Override
  public void close() {
    Cleanup.forEach(created, NDArray::close);
  }

  /// Makes an array that belongs to the optimizer alone, as do those that DJL makes in the first
  /// step, since the optimizer may outlive the trainer.
  private NDArray create(ArrayKind kind, Device device) {
    NDArray array = TorchArrays.create(parts.trainer().getManager(), kind, device);
    created.add(array);
    return array;
  }
}
