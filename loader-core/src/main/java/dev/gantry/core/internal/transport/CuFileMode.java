// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFileParameters.Flag;
import dev.gantry.core.internal.natives.CuFileProperties;
import dev.gantry.core.internal.natives.CuFileProperties.Storage;
import java.nio.file.Files;
import java.nio.file.Path;

/// Opens cuFile's driver so that no byte is copied by the CPU, or that all are.
///
/// By default libcufile copies through the CPU, without telling, for every file that it cannot reach
/// directly. For [Transport#GDS] that is switched off, and the driver is used only if the switch is
/// in force: the whole process has one, which is set when its first user opens the driver.
final class CuFileMode {
  private static final Path NVIDIA_FS = Path.of("/proc/driver/nvidia-fs/version");

  private CuFileMode() {}

  /// The driver, to be closed by [#close]; or why it cannot be opened this way.
  ///
  /// @param kind [Transport#GDS] or [Transport#COMPAT]
  static Availability<CuFile> open(CuFile cuFile, Transport kind) {
    configure(cuFile, kind, true);
    try {
      cuFile.openDriver();
    } catch (TransferException e) {
      configure(cuFile, kind, false);
      return Availability.absent(e.getMessage());
    }
    String objection;
    try {
      objection = objection(cuFile, kind);
    } catch (TransferException e) {
      objection = e.getMessage();
    }
    if (objection.isEmpty()) {
      return Availability.present(cuFile);
    }
    close(cuFile, kind);
    return Availability.absent(objection);
  }

  /// Closes the driver, and restores libcufile's default for other users in this process.
  static void close(CuFile cuFile, Transport kind) {
    try {
      cuFile.closeDriver();
    } finally {
      configure(cuFile, kind, false);
    }
  }

  private static void configure(CuFile cuFile, Transport kind, boolean on) {
    cuFile
        .parameters()
        .toOptional()
        .ifPresent(parameters -> {
          try {
            boolean byTheCpu = kind == Transport.COMPAT;
            parameters.set(Flag.PROPERTIES_ALLOW_COMPAT_MODE, byTheCpu || !on);
            if (byTheCpu) {
              parameters.set(Flag.FORCE_COMPAT_MODE, on);
            }
          } catch (TransferException _) {
            // Another user in this process has the driver open; objection() looks at what is in
            // force.
          }
        });
  }

  private static String objection(CuFile cuFile, Transport kind) {
    CuFileProperties properties = cuFile.properties();
    boolean mayUseTheCpu =
        cuFile
            .parameters()
            .toOptional()
            .map(parameters ->
                parameters.get(Flag.PROPERTIES_ALLOW_COMPAT_MODE)
                    || parameters.get(Flag.FORCE_COMPAT_MODE))
            .orElse(properties.allowsCompatMode());
    if (kind == Transport.COMPAT) {
      return mayUseTheCpu ? "" : "cuFile's compatibility mode is switched off in this process";
    }
    if (!Files.exists(NVIDIA_FS) && !properties.supported().contains(Storage.NVME_P2P)) {
      return "neither nvidia-fs nor peer-to-peer NVMe is available, so cuFile would copy through"
          + " the CPU";
    }
    return mayUseTheCpu
        ? "cuFile may copy through the CPU without telling: its compatibility mode is allowed in"
            + " this process, by another user of it or by cufile.json (allow_compat_mode)"
        : "";
  }
}
