// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import ai.djl.Device;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import ai.djl.translate.Batchifier;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.djl.internal.training.OneUpdate;
import java.util.Arrays;
import java.util.List;

/// A batch that is split among devices. Closing it closes all parts.
final class SplitBatch extends Batch {
  private final List<SlotBatch> parts;
  private final int used;
  private final List<Device> devices;

  /// @param manager the parent of the parts' managers
  /// @param parts one part for each device, in the order of the devices
  /// @param used how many parts, from the first, hold samples of the batch; the other parts repeat
  ///     samples, because their ranks have no samples left
  SplitBatch(
      NDManager manager, List<SlotBatch> parts, int used, long progress, long progressTotal) {
    super(
        manager,
        new NDList(),
        new NDList(),
        parts.stream().limit(used).mapToInt(Batch::getSize).sum(),
        Batchifier.STACK,
        Batchifier.STACK,
        progress,
        progressTotal);
    this.parts = List.copyOf(parts);
    this.used = used;
    this.devices = parts.stream().map(part -> part.getManager().getDevice()).toList();
  }

  @Override
  public NDList getData() {
    throw inParts("getData");
  }

  @Override
  public NDList getLabels() {
    throw inParts("getLabels");
  }

  private MisuseException inParts(String call) {
    return new MisuseException(
        call
            + ": this batch lies on "
            + devices
            + " (optDevices); take its parts by split(devices, false), as EasyTrain does");
  }

  /// Returns the parts that hold samples: DJL's own split gives no empty parts either. The parts
  /// belong to this batch.
  @Override
  public Batch[] split(Device[] devices, boolean evenSplit) {
    if (!this.devices.equals(Arrays.asList(devices))) {
      throw new MisuseException(
          "the devices of the training must be those of optDevices, %s (were %s)"
              .formatted(this.devices, Arrays.toString(devices)));
    }
    List<SlotBatch> split = parts.subList(0, used);
    OneUpdate.share(
        getManager().getParentManager(), split.stream().mapToInt(Batch::getSize).toArray());
    return split.toArray(Batch[]::new);
  }

  /// Closes all parts. Idempotent.
  @Override
  public void close() {
    Cleanup.forEach(parts, SlotBatch::close);
    if (getManager() != null) {
      super.close();
    }
  }
}
