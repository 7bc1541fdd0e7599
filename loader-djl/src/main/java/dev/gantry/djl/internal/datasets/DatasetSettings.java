// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import ai.djl.Device;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.batches.Batches;
import java.util.List;
import java.util.function.UnaryOperator;

/// Says how batches are read and transformed.
///
/// @param devices the devices, each of which gets a part of each batch; empty for the manager's
///     device
/// @param slots how many batches may be in memory at once
/// @param epochs how many epochs one call of `getData` gives
/// @param transform the transform of the data
/// @param labelTransform the transform of the labels
public record DatasetSettings(
    GantrySession session,
    TransferOptions transfer,
    List<Device> devices,
    int slots,
    boolean poison,
    long epochs,
    FieldRoles roles,
    UnaryOperator<NDList> transform,
    UnaryOperator<NDList> labelTransform) {
  public DatasetSettings {
    devices = List.copyOf(devices);
  }

  public List<Device> devices(NDManager manager) {
    return devices.isEmpty() ? List.of(manager.getDevice()) : devices;
  }

  /// The options of an iteration's ring.
  public RingOptions ring(Batches batches, dev.gantry.core.Device target) {
    return new RingOptions(
        target, slots, batches.slotBytes(), batches.hostBytes(), transfer, poison);
  }
}
