// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import ai.djl.translate.Batchifier;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.formats.internal.batches.BatchView;
import java.util.UUID;

/// A batch whose arrays lie in a slot of a ring. Closing it gives the slot back; views that outlive
/// it keep the memory.
final class SlotBatch extends Batch {
  private final String id = "gantry-slot-" + UUID.randomUUID();
  private final RingBatch<BatchView> slot;
  private volatile boolean closed;

  SlotBatch(
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
    // Gives the slot back if the manager is closed before the batch.
    manager.attachInternal(id, this::giveBack);
  }

  private void giveBack() {
    closed = true;
    slot.close();
  }

  boolean isClosed() {
    return closed;
  }

  /// Closes the arrays and gives the slot back. Idempotent.
  @Override
  public void close() {
    if (closed) {
      return;
    }
    try {
      // The slot is given back after the arrays are closed: as long as they live, its memory cannot
      // be used
      // again.
      getManager().detachInternal(id);
      super.close();
    } finally {
      giveBack();
    }
  }
}
