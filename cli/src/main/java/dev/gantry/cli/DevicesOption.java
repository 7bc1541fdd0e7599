// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.core.Device;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.DevicePreparation;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// `--device` of commands that load onto several devices at once.
final class DevicesOption {
  @Option(
      names = "--device",
      paramLabel = "DEVICE",
      split = ",",
      converter = DeviceOption.Converter.class,
      description =
          "host or cuda:N, or several as in cuda:0,cuda:1; the first GPU, or host where there is"
              + " none, by default.")
  private @Nullable List<Device> devices;

  List<Device> devices() {
    return devices == null ? List.of(GantrySession.bestDevice()) : devices;
  }

  /// Begins to open the devices, while the command does what needs none.
  void prepare() {
    if (devices == null) {
      DevicePreparation.begin(GantrySession::bestDevice);
    } else {
      devices.forEach(device -> DevicePreparation.begin(() -> device));
    }
  }
}
