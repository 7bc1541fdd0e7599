// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import ai.djl.translate.Batchifier;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.FieldView;
import java.util.List;
import java.util.UUID;

/// A batch whose arrays lie in a slot of a ring. Closing the batch returns the slot to the ring;
/// views that outlive the batch keep the slot's memory alive.
final class SlotBatch extends Batch {
  private final String id = "gantry-slot-" + UUID.randomUUID();
  private final RingBatch<BatchView> slot;
  private volatile boolean closed;

  private SlotBatch(
      NDManager manager,
      NDList data,
      NDList labels,
      long progress,
      long progressTotal,
      RingBatch<BatchView> slot) {
    super(
        manager,
        data,
        labels,
        slot.label().samples(),
        // DJL uses the batchifiers only to split a batch among devices.
        Batchifier.STACK,
        Batchifier.STACK,
        progress,
        progressTotal);
    this.slot = slot;
    // Returns the slot if the manager is closed before the batch.
    manager.attachInternal(id, this::giveBack);
  }

  /// Makes a batch over a filled slot of a ring. Each field becomes an array, transformed if the
  /// settings say so.
  ///
  /// @param device the device that holds the slot
  /// @param manager owns all arrays of the batch; the batch closes it
  /// @param slot is closed by the batch; if this throws, the caller must close it
  static SlotBatch of(
      DatasetSettings settings,
      Device device,
      NDManager manager,
      RingBatch<BatchView> slot,
      long progress,
      long progressTotal) {
    NDList data =
        MisuseException.requireGiven(
            "the result of optTransform",
            settings.transform().apply(arrays(manager, device, slot, settings.roles().data())));
    NDList labels =
        MisuseException.requireGiven(
            "the result of optLabelTransform",
            settings
                .labelTransform()
                .apply(arrays(manager, device, slot, settings.roles().labels())));
    return new SlotBatch(manager, data, labels, progress, progressTotal, slot);
  }

  private static NDList arrays(
      NDManager manager, Device device, RingBatch<BatchView> slot, List<String> names) {
    NDList arrays = new NDList(names.size());
    for (String name : names) {
      FieldView field =
          slot.label().fields().stream()
              .filter(each -> each.name().equals(name))
              .findFirst()
              .orElseThrow(() -> new IllegalStateException("a batch without '" + name + "'"));
      arrays.add(
          TorchArrays.over(
              manager,
              slot.region(field.offset(), 0),
              device,
              field.dtype(),
              field.shape(),
              field.strides().stream().mapToLong(Long::longValue).toArray(),
              field.name()));
    }
    return arrays;
  }

  private void giveBack() {
    closed = true;
    slot.close();
  }

  boolean isClosed() {
    return closed;
  }

  /// Closes the arrays and returns the slot to the ring. Idempotent.
  @Override
  public void close() {
    if (closed) {
      return;
    }
    try {
      // The slot is returned after the arrays are closed, because its memory cannot be used again
      // while they live.
      getManager().detachInternal(id);
      super.close();
    } finally {
      giveBack();
    }
  }
}
