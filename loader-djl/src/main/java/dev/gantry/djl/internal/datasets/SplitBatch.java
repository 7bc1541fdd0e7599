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

/// A batch of which each device has a part. Closing it closes the parts.
final class SplitBatch extends Batch {
  private final List<SlotBatch> parts;
  private final int used;
  private final List<Device> devices;

  /// @param manager which the managers of the parts belong to
  /// @param parts by device
  /// @param used how many of them, from the first on, belong to the batch; the others repeat samples, as
  ///     ranks do that have none left
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

  /// The parts that have samples, as DJL's own split gives no empty ones. They belong to this batch.
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
    Cleanup.runAll(parts.stream().<Runnable>map(part -> part::close).toList());
    if (getManager() != null) {
      super.close();
    }
  }
}
