// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import ai.djl.engine.Engine;
import ai.djl.engine.StandardCapabilities;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.DevicePreparation;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// The option `--device` of commands that load onto one device.
final class DeviceOption {
  @Option(
      names = "--device",
      paramLabel = "DEVICE",
      description = "host or cuda:N; by default the first GPU, or host if there is no GPU.")
  private @Nullable Device device;

  boolean isChosen() {
    return device != null;
  }

  Device device() {
    return device == null ? GantrySession.bestDevice() : device;
  }

  /// Returns the device as DJL's type, or the default of DJL's engine if the option is not given.
  ///
  /// @throws DeviceUnavailableException if DJL has no PyTorch engine, or its engine has no such GPU
  ai.djl.Device ofDjl() {
    ai.djl.Device usual = TorchArrays.defaultDevice();
    Engine engine = Engine.getEngine("PyTorch");
    return switch (device) {
      case null -> usual;
      case Device.Host _ -> ai.djl.Device.cpu();
      case Device.Cuda(int ordinal) -> {
        if (!engine.hasCapability(StandardCapabilities.CUDA) || ordinal >= engine.getGpuCount()) {
          throw new DeviceUnavailableException("DJL's PyTorch engine has no GPU " + ordinal);
        }
        yield ai.djl.Device.gpu(ordinal);
      }
    };
  }

  /// Starts to open the device in the background, while the command does work that needs no
  /// device.
  void prepare() {
    DevicePreparation.begin(this::device);
  }
}
