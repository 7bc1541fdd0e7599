// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.copies.Replicas;
import dev.gantry.djl.internal.torch.PyTorch;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/// Several devices of this process onto which weights are loaded. The CPU may be one of them. Immutable.
///
/// @param devices the devices, each named once
/// @param slices which part of each tensor a device gets; empty if each device gets all tensors
///     whole
public record Placement(List<Device> devices, Optional<TensorSelection.Slices> slices) {
  /// @throws MisuseException if a device is named twice, or none is
  public Placement {
    MisuseException.requireGiven("devices", devices)
        .forEach(device -> MisuseException.requireGiven("each of devices", device));
    devices = List.copyOf(devices);
    MisuseException.requireGiven("slices", slices);
    Replicas.require(devices.stream().map(PyTorch::device).toList());
  }

  /// The same tensors on each device. Each GPU reads its share of the bytes over its own link and
  /// copies them to the other GPUs. GPUs whose memory the driver does not make accessible to each
  /// other get all bytes from the host. The report for `optReport` tells which of the two was done
  /// ([TransferReport#devices][dev.gantry.core.TransferReport#devices]).
  public static Placement replicated(Device... devices) {
    return new Placement(
        Arrays.asList(MisuseException.requireGiven("devices", devices)), Optional.empty());
  }

  /// A model that the devices share: device 0 gets rank 0's part of each tensor, and so on. Tensors that
  /// no rule names go to each device.
  public static Placement sliced(TensorSelection.Slices slices, Device... devices) {
    return new Placement(
        Arrays.asList(MisuseException.requireGiven("devices", devices)),
        Optional.of(MisuseException.requireGiven("slices", slices)));
  }
}
