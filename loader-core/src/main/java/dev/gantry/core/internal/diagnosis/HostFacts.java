// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.diagnosis;

import dev.gantry.core.internal.cufile.CuFileGate;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// Facts about transfers between disks and GPUs, from sysfs and procfs.
///
/// @param iommu whether transfers between devices go through the IOMMU
/// @param acs whether PCIe bridges send transfers between devices up to the CPU, by Access Control Services
/// @param nvidiaFs whether the module nvidia-fs is loaded
/// @param nvidiaFsVersion the module's version, such as `2.25.7`; empty if it is not loaded
/// @param udev whether udev's records of disks can be read
/// @param kernel the kernel's release, such as `6.17.0-23-generic`; empty if the kernel does not say
/// @param staticBar1 whether NVIDIA's driver maps all of a GPU's memory into BAR1, as peer-to-peer DMA on x86 needs
public record HostFacts(
    State iommu,
    State acs,
    boolean nvidiaFs,
    String nvidiaFsVersion,
    boolean udev,
    String kernel,
    State staticBar1) {
  /// The state of a feature that slows or prevents transfers between devices.
  public enum State {
    OFF,
    /// The IOMMU is on, but does not translate the addresses of the host's devices.
    PASS_THROUGH,
    ON,
    UNKNOWN;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
  }

  // These numbers are from the PCI Express base specification, on the configuration space.
  private static final int EXTENDED_SPACE = 0x100;
  private static final int SPACE_BYTES = 4096;
  private static final int ACS = 0x000d;
  private static final int ACS_CONTROL = 6;

  /// The bits of the ACS control register that redirect peer-to-peer requests and completions, or forward them
  /// upstream.
  private static final int REDIRECTS = 1 << 2 | 1 << 3 | 1 << 4;

  private static final Pattern VERSION = Pattern.compile("(\\d{1,4})\\.(\\d{1,4})");

  private static final String BRIDGE = "0x0604";

  /// Examines this machine.
  static HostFacts look() {
    return look(Path.of("/"));
  }

  /// @param root the folder that has `sys`, `proc` and `run`
  static HostFacts look(Path root) {
    return new HostFacts(
        iommu(root),
        acs(root.resolve("sys/bus/pci/devices")),
        CuFileGate.hasNvidiaFs(root),
        DiskFacts.text(root.resolve("sys/module/nvidia_fs/version")),
        Files.isReadable(root.resolve("run/udev/data")),
        kernel(root),
        staticBar1(root));
  }

  /// Whether reads by nvidia-fs may hang in the kernel: see [Remedy#NVME_LISTS_HANG].
  boolean mayHang() {
    return nvidiaFs && isKernelSince(6, 17);
  }

  /// Returns [#mayHang] of a machine without examining its other facts.
  ///
  /// @param root the folder that has `proc`
  static boolean mayHang(Path root) {
    return CuFileGate.hasNvidiaFs(root) && isSince(kernel(root), 6, 17);
  }

  /// Whether the kernel is of version `major`.`minor` or later; false if its version is not known.
  boolean isKernelSince(int major, int minor) {
    return isSince(kernel, major, minor);
  }

  private static boolean isSince(String kernel, int major, int minor) {
    Matcher version = VERSION.matcher(kernel);
    if (!version.lookingAt()) {
      return false;
    }
    int ofKernel = Integer.parseInt(version.group(1));
    return ofKernel > major || (ofKernel == major && Integer.parseInt(version.group(2)) >= minor);
  }

  private static String kernel(Path root) {
    return DiskFacts.text(root.resolve("proc/sys/kernel/osrelease"));
  }

  /// Reads the settings with which the driver was loaded from procfs, since the module's
  /// parameters in sysfs do not keep them.
  private static State staticBar1(Path root) {
    try (Stream<String> settings = Files.lines(root.resolve("proc/driver/nvidia/params"))) {
      return settings.anyMatch(
              line -> line.startsWith("RegistryDwords:") && line.contains("RMForceStaticBar1=1"))
          ? State.ON
          : State.OFF;
    } catch (IOException | UncheckedIOException _) {
      return State.UNKNOWN;
    }
  }

  private static State iommu(Path root) {
    try (DirectoryStream<Path> units = Files.newDirectoryStream(root.resolve("sys/class/iommu"))) {
      if (!units.iterator().hasNext()) {
        return State.OFF;
      }
      String options = " " + Files.readString(root.resolve("proc/cmdline")).strip() + " ";
      return options.contains(" iommu=pt ") || options.contains(" iommu.passthrough=1 ")
          ? State.PASS_THROUGH
          : State.ON;
    } catch (IOException _) {
      // A container may hide both files.
      return State.UNKNOWN;
    }
  }

  private static State acs(Path devices) {
    State found = State.UNKNOWN;
    try (DirectoryStream<Path> all = Files.newDirectoryStream(devices)) {
      for (Path device : all) {
        if (Files.readString(device.resolve("class")).startsWith(BRIDGE)) {
          switch (acsOf(Files.readAllBytes(device.resolve("config")))) {
            case ON -> {
              return State.ON;
            }
            case OFF -> found = State.OFF;
            case PASS_THROUGH, UNKNOWN -> {}
          }
        }
      }
      return found;
    } catch (IOException _) {
      return State.UNKNOWN;
    }
  }

  /// @param config a bridge's configuration space; the kernel gives all of it to root only
  private static State acsOf(byte[] config) {
    if (config.length < SPACE_BYTES) {
      return State.UNKNOWN;
    }
    ByteBuffer space = ByteBuffer.wrap(config).order(ByteOrder.LITTLE_ENDIAN);
    int at = EXTENDED_SPACE;
    // A damaged list of capabilities may have a cycle, so the loop ends after as many capabilities
    // as the space can hold.
    for (int i = 0; i < SPACE_BYTES / 8 && at >= EXTENDED_SPACE; i++) {
      int header = space.getInt(at);
      if ((header & 0xffff) == ACS) {
        return (space.getShort(at + ACS_CONTROL) & REDIRECTS) == 0 ? State.OFF : State.ON;
      }
      at = header >>> 20 & ~3;
    }
    return State.OFF;
  }
}
