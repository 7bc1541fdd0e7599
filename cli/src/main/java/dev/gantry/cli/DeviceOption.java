// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.DevicePreparation;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/// `--device`, the same for all commands that load.
final class DeviceOption {
  @Option(
      names = "--device",
      paramLabel = "DEVICE",
      converter = Converter.class,
      description = "host or cuda:N; the first GPU, or host where there is none, by default.")
  private @Nullable Device device;

  boolean isChosen() {
    return device != null;
  }

  Device device() {
    return device == null ? GantrySession.bestDevice() : device;
  }

  /// Begins to open the device, while the command does what needs none.
  void prepare() {
    DevicePreparation.begin(this::device);
  }

  /// Reads a device's name.
  static final class Converter implements ITypeConverter<Device> {
    @Override
    public Device convert(String name) {
      try {
        return Device.parse(name);
      } catch (MisuseException e) {
        throw new TypeConversionException(String.valueOf(e.getMessage()));
      }
    }
  }
}
