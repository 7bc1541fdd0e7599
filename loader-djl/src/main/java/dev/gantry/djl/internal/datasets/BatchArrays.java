// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.core.Device;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.FieldView;
import java.util.List;

/// Makes DJL batches over filled slots of a ring: an array over each field, transformed if the options say
/// so.
final class BatchArrays {
  private final DatasetSettings settings;
  private final Device device;

  BatchArrays(DatasetSettings settings, Device device) {
    this.settings = settings;
    this.device = device;
  }

  /// @param manager to which all arrays belong, and which the batch closes
  /// @param slot which the batch closes; if this throws, the caller must close it
  SlotBatch batch(NDManager manager, RingBatch<BatchView> slot, long progress, long progressTotal) {
    NDList data = settings.transform().apply(arrays(manager, slot, settings.roles().data()));
    NDList labels =
        settings.labelTransform().apply(arrays(manager, slot, settings.roles().labels()));
    return new SlotBatch(manager, data, labels, progress, progressTotal, slot);
  }

  private NDList arrays(NDManager manager, RingBatch<BatchView> slot, List<String> names) {
    NDList arrays = new NDList(names.size());
    for (String name : names) {
      arrays.add(wrap(manager, slot, view(slot.label(), name)));
    }
    return arrays;
  }

  private static FieldView view(BatchView batch, String name) {
    return batch.fields().stream()
        .filter(field -> field.name().equals(name))
        .findFirst()
        .orElseThrow(() -> new IllegalStateException("a batch without '" + name + "'"));
  }

  private NDArray wrap(NDManager manager, RingBatch<BatchView> slot, FieldView field) {
    return TorchArrays.over(
        manager,
        slot.region(field.offset(), 0),
        device,
        field.dtype(),
        field.shape(),
        field.strides().stream().mapToLong(Long::longValue).toArray(),
        field.name());
  }
}
