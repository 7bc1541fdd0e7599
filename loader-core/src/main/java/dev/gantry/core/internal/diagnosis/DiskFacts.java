// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.diagnosis;

import dev.gantry.core.Location;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.TreeSet;

/// Facts about the disks that hold a file, from sysfs.
///
/// @param raid the level of the RAID that the disks form, such as `raid0`; empty if they form none
/// @param multipath an NVMe disk that the kernel reaches, or could reach, by several paths; empty
///     if there is none
/// @param protection an NVMe disk that keeps metadata beside its blocks; empty if there is none
record DiskFacts(String raid, String multipath, String protection) {
  static final DiskFacts NONE = new DiskFacts("", "", "");

  /// The largest depth of a stack of devices that is examined.
  private static final int MAX_DEPTH = 8;

  static DiskFacts of(Location location) {
    if (!(location instanceof Location.Local local)) {
      return NONE;
    }
    try {
      long device = ((Number) Files.getAttribute(local.path(), "unix:dev")).longValue();
      return of(Path.of("/sys/dev/block"), device);
    } catch (IOException | UnsupportedOperationException | IllegalArgumentException _) {
      return NONE;
    }
  }

  /// @param devices the folder that has a link for each block device, named by its numbers
  /// @param device the device's major and minor number in one number, as the C library packs them
  static DiskFacts of(Path devices, long device) {
    long major = ((device >>> 8) & 0xfff) | ((device >>> 32) & 0xfffff000L);
    long minor = (device & 0xff) | ((device >>> 12) & 0xffffff00L);
    try {
      return of(devices.resolve(major + ":" + minor).toRealPath(), 0);
    } catch (IOException _) {
      // The device has no disk, or a container hides the disk.
      return NONE;
    }
  }

  private static DiskFacts of(Path block, int depth) {
    Path disk = Files.exists(block.resolve("partition")) ? block.resolve("..").normalize() : block;
    DiskFacts found =
        new DiskFacts(text(disk.resolve("md/level")), multipathOf(disk), protectionOf(disk));
    if (depth == MAX_DEPTH) {
      return found;
    }
    // The parts are sorted by name, so that the answer is always the same.
    TreeSet<Path> parts = new TreeSet<>();
    try (DirectoryStream<Path> slaves = Files.newDirectoryStream(disk.resolve("slaves"))) {
      slaves.forEach(parts::add);
      for (Path part : parts) {
        found = found.orElse(of(part.toRealPath(), depth + 1));
      }
    } catch (IOException _) {
      return found;
    }
    return found;
  }

  private DiskFacts orElse(DiskFacts other) {
    return new DiskFacts(
        raid.isEmpty() ? other.raid : raid,
        multipath.isEmpty() ? other.multipath : multipath,
        protection.isEmpty() ? other.protection : protection);
  }

  private static String name(Path disk) {
    Path name = disk.getFileName();
    return name == null ? "" : name.toString();
  }

  /// With the kernel's multipath a disk belongs to a subsystem, and to no controller.
  private static String multipathOf(Path disk) {
    return name(disk).startsWith("nvme") && disk.toString().contains("/nvme-subsystem/")
        ? name(disk)
        : "";
  }

  private static String protectionOf(Path disk) {
    String format = text(disk.resolve("integrity/format"));
    return name(disk).startsWith("nvme") && !format.isEmpty() && !format.equals("none")
        ? name(disk) + " (" + format + ")"
        : "";
  }

  /// Returns what a small file of the kernel says; empty if it cannot be read.
  static String text(Path file) {
    try {
      return Files.readString(file).strip();
    } catch (IOException _) {
      return "";
    }
  }
}
