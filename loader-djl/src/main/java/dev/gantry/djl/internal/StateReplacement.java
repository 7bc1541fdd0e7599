package dev.gantry.djl.internal;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDScope;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// One exchange of an optimizer's arrays. What it takes memory for, it takes before it changes
/// anything; closed without being applied, it gives that back.
final class StateReplacement implements AutoCloseable {
  private final TrainerParts parts;
  private final List<NDArray> created = new ArrayList<>();
  private final List<Runnable> copies = new ArrayList<>();
  private final List<Runnable> exchanges = new ArrayList<>();

  StateReplacement(TrainerParts parts) {
    this.parts = parts;
  }

  /// From [#apply] on, the optimizer's state of a parameter is a copy of `values`, on each device
  /// of the trainer; if there are none, it has no state.
  void plan(StateField state, String parameterId, @Nullable NDArray values) {
    Map<String, Map<Device, NDArray>> byId = state.arrays().get(parts.optimizer());
    Map<Device, NDArray> before = byId.getOrDefault(parameterId, Map.of());
    if (values == null) {
      exchanges.add(() -> {
        byId.remove(parameterId);
        before.values().forEach(NDArray::close);
      });
      return;
    }
    Map<Device, NDArray> after = new ConcurrentHashMap<>();
    for (Device device : parts.devices()) {
      NDArray existing = before.get(device);
      if (existing == null) {
        after.put(device, copy(values, device));
      } else {
        after.put(device, existing);
        copies.add(() -> TorchArrays.copy(values, existing));
      }
    }
    exchanges.add(() -> {
      byId.put(parameterId, after);
      before.forEach((device, array) -> {
        if (!after.containsKey(device)) {
          array.close();
        }
      });
    });
  }

  void apply() {
    copies.forEach(Runnable::run);
    exchanges.forEach(Runnable::run);
    created.clear();
  }

  @Override
  public void close() {
    created.forEach(NDArray::close);
  }

  /// An array that belongs to nobody but the optimizer, as those that DJL makes in its first step:
  /// the optimizer may outlive the trainer.
  private NDArray copy(NDArray values, Device device) {
    PtNDManager manager = (PtNDManager) parts.trainer().getManager();
    long handle = PyTorch.library().move(((PtNDArray) values).getHandle(), PyTorch.device(device));
    NDArray array = GantryNDArray.over(manager, handle);
    NDScope.unregister(array);
    array.detach();
    created.add(array);
    return array;
  }
}
