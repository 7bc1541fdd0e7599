// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFile.Flag;
import dev.gantry.core.internal.natives.CuFile.Storage;
import dev.gantry.core.internal.natives.CuFileProperties;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// Sets libcufile's driver up for one transport, and decides whether the open driver serves it.
///
/// Unless a setting forbids it, libcufile silently copies through the CPU every file that it
/// cannot reach directly. For [Transport#GDS], this class forbids such copies, and uses the driver
/// only if the setting took effect: the whole process has one such setting, which is fixed when the
/// process first opens the driver.
///
/// The driver reaches disks by nvidia-fs, or by peer-to-peer DMA. From libcufile 1.16 on,
/// `CU_FILE_P2P_SUPPORTED` and the flags of each kind of storage tell whether it uses
/// peer-to-peer DMA; NVIDIA advises against asking for `CU_FILE_NVME_P2P_SUPPORTED`, which is the
/// only such flag of older versions.
public final class CuFileGate {
  private static final Path NVIDIA_FS = Path.of("/proc/driver/nvidia-fs/version");

  private CuFileGate() {}

  /// Sets the flags that must be set before the driver opens, or restores libcufile's defaults for
  /// other users in this process.
  ///
  /// @param kind [Transport#GDS] or [Transport#COMPAT]
  public static void configure(CuFile cuFile, Transport kind, boolean on) {
    if (!cuFile.hasFlags()) {
      return;
    }
    try {
      boolean byTheCpu = kind == Transport.COMPAT;
      cuFile.set(Flag.PROPERTIES_ALLOW_COMPAT_MODE, byTheCpu || !on);
      if (byTheCpu) {
        cuFile.set(Flag.FORCE_COMPAT_MODE, on);
      } else if (on && hasFallbackFlags(cuFile)) {
        cuFile.set(Flag.PROPERTIES_POSIX_IO_MODE, false);
        cuFile.set(Flag.GDS_FALLBACK_IO, false);
      }
    } catch (TransferException _) {
      // Another user in this process has the driver open; objection() looks at the setting that is
      // in force.
    }
  }

  private static boolean hasFallbackFlags(CuFile cuFile) {
    return cuFile.version().toOptional().filter(version -> version.isSince(1, 19)).isPresent();
  }

  /// Says why the open driver cannot serve a transport; empty if it can.
  ///
  /// @param kind [Transport#GDS] or [Transport#COMPAT]
  public static String objection(CuFile cuFile, Transport kind) {
    CuFileProperties properties = cuFile.properties();
    boolean mayUseTheCpu =
        cuFile.hasFlags()
            ? cuFile.get(Flag.PROPERTIES_ALLOW_COMPAT_MODE) || cuFile.get(Flag.FORCE_COMPAT_MODE)
            : properties.allowsCompatMode();
    if (kind == Transport.COMPAT) {
      return mayUseTheCpu ? "" : "cuFile's compatibility mode is switched off in this process";
    }
    if (!Files.exists(NVIDIA_FS)) {
      String none = lacksPeerToPeer(cuFile, properties);
      if (!none.isEmpty()) {
        return "neither nvidia-fs nor peer-to-peer NVMe is available, so cuFile would copy through"
            + " the CPU"
            + none;
      }
    }
    if (mayUseTheCpu) {
      return "cuFile may copy through the CPU without telling: its compatibility mode is allowed in"
          + " this process, by another user of it or by cufile.json (allow_compat_mode)";
    }
    return properties.hasFallbacks()
        ? "cuFile may copy through the CPU without telling: cufile.json has vanilla_posix_io_mode"
            + " or gds_fallback_io"
        : "";
  }

  /// Says why there is no peer-to-peer DMA; empty if there is. If peer-to-peer DMA for NVMe is
  /// available but off, the call switches it on.
  private static String lacksPeerToPeer(CuFile cuFile, CuFileProperties properties) {
    if (cuFile.peerToPeer(Storage.NVME) instanceof Availability.Absent<Integer>) {
      return properties.hasPeerToPeerNvme() ? "" : " (CU_FILE_NVME_P2P_SUPPORTED is not set)";
    }
    if (!properties.hasPeerToPeer()) {
      return " (CU_FILE_P2P_SUPPORTED is not set)";
    }
    if (isOnAnywhere(cuFile)) {
      return "";
    }
    int way =
        System.getProperty("os.arch").equals("aarch64")
            ? CuFile.CHIP_TO_CHIP
            : CuFile.PCI_PEER_TO_PEER;
    try {
      cuFile.setPeerToPeer(Storage.NVME, way);
    } catch (TransferException refused) {
      return " (" + refused.getMessage() + ")";
    }
    return isOnAnywhere(cuFile) ? "" : " (cuFileDriverGetP2PFlags has none for NVMe)";
  }

  private static boolean isOnAnywhere(CuFile cuFile) {
    int ways = CuFile.PCI_PEER_TO_PEER | CuFile.CHIP_TO_CHIP;
    return List.of(Storage.values()).stream()
        .anyMatch(storage -> (cuFile.peerToPeer(storage).toOptional().orElse(0) & ways) != 0);
  }
}
