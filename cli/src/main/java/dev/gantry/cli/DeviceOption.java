// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.core.Device;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.DevicePreparation;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// The option `--device`, the same for all commands that load.
final class DeviceOption {
  @Option(
      names = "--device",
      paramLabel = "DEVICE",
      description = "host or cuda:N; the first GPU, or host where there is none, by default.")
  private @Nullable Device device;

  boolean isChosen() {
    return device != null;
  }

  Device device() {
    return device == null ? GantrySession.bestDevice() : device;
  }

  /// Begins to open the device in the background, while the command does what needs no device.
  void prepare() {
    DevicePreparation.begin(this::device);
  }
}
