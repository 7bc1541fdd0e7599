// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import dev.gantry.core.CuFileConfig;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFile.Flag;
import dev.gantry.core.internal.natives.CuFile.Storage;
import dev.gantry.core.internal.natives.CuFileProperties;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

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
  private static final Path ROOT = Path.of("/");

  private static final String NOTHING =
      "neither nvidia-fs nor peer-to-peer NVMe is available, so cuFile would copy through the CPU";

  private static final Pattern SWITCHED_ON = Pattern.compile("\"use_pci_p2pdma\"\\s*:\\s*true");

  /// The types of the file systems besides those of NVMe disks that peer-to-peer DMA can serve, as
  /// `/proc/self/mounts` names them.
  private static final Pattern SERVED = Pattern.compile("(?m)^\\S+ \\S+ (nfs4?|virtiofs) ");

  private CuFileGate() {}

  /// Says why [Transport#GDS] cannot serve on this machine; empty if only the driver can tell. Without
  /// nvidia-fs, opening the driver takes 0.2 s or more even if it refuses, and libcufile 1.15.1 then
  /// frees memory of other threads (both seen on H200 hosts; see `docs/cufile.md`). A library that a
  /// setting names is always asked.
  ///
  /// @param settings the session's settings; null for libcufile's own
  public static String absence(CuFile cuFile, @Nullable CuFileConfig settings) {
    if (CuFile.isNamed() || DriverSettings.isOpen(cuFile)) {
      return "";
    }
    return absence(ROOT, cuFile.version().toOptional(), DriverSettings.text(settings));
  }

  /// Says why no driver can serve a machine. Before libcufile 1.16, peer-to-peer DMA is off unless
  /// `cufile.json` switches it on. From 1.16 on, [#objection] may switch it on; it serves NVMe disks,
  /// local ones and those over fabrics, virtiofs and NFS.
  ///
  /// @param root the folder that has `sys` and `proc`
  /// @param version the library's version; empty if it is too old to tell
  /// @param settings the text of `cufile.json`
  static String absence(Path root, Optional<CuFile.Version> version, String settings) {
    if (hasNvidiaFs(root)) {
      return "";
    }
    if (version.filter(each -> each.isSince(1, 16)).isEmpty()) {
      return SWITCHED_ON.matcher(settings).find()
          ? ""
          : NOTHING + " (use_pci_p2pdma is not on in cufile.json)";
    }
    return mayHaveServedDisk(root)
        ? ""
        : NOTHING + " (there is no NVMe disk, and no file system of virtiofs or NFS)";
  }

  /// Whether the module nvidia-fs is loaded.
  ///
  /// @param root the folder that has `proc`
  public static boolean hasNvidiaFs(Path root) {
    return Files.exists(root.resolve("proc/driver/nvidia-fs/version"));
  }

  private static boolean mayHaveServedDisk(Path root) {
    try (Stream<Path> controllers = Files.list(root.resolve("sys/class/nvme"))) {
      if (controllers.findAny().isPresent()) {
        return true;
      }
    } catch (NoSuchFileException _) {
      // The kernel's NVMe driver is not loaded, or sysfs is hidden.
      if (!Files.isDirectory(root.resolve("sys/class/block"))) {
        return true;
      }
    } catch (IOException | UncheckedIOException _) {
      return true;
    }
    try {
      return SERVED.matcher(Files.readString(root.resolve("proc/self/mounts"))).find();
    } catch (IOException _) {
      return true;
    }
  }

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
    if (!hasNvidiaFs(ROOT)) {
      String none = lacksPeerToPeer(cuFile, properties);
      if (!none.isEmpty()) {
        return NOTHING + none;
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
