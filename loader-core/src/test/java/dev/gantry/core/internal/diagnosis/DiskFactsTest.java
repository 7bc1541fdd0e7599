// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.diagnosis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Facts about disks, read from a made-up sysfs.
class DiskFactsTest {
  private static final long NVME_PARTITION = (259 << 8) | 1;
  private static final long RAID = 9 << 8;

  /// Major number 259 and minor number 300, whose bits lie in both parts of the device number.
  private static final long HIGH_MINOR = (259 << 8) | (300 & 0xff) | ((300L & 0xffffff00L) << 12);

  @TempDir Path root;

  private Path device(String folder, String numbers) throws IOException {
    Path device = Files.createDirectories(root.resolve("devices/" + folder));
    Path links = Files.createDirectories(root.resolve("block"));
    Files.createSymbolicLink(links.resolve(numbers), device);
    return device;
  }

  private static void write(Path device, String file, String text) throws IOException {
    Path path = device.resolve(file);
    Files.createDirectories(path.getParent());
    Files.writeString(path, text);
  }

  private DiskFacts facts(long device) {
    return DiskFacts.of(root.resolve("block"), device);
  }

  @Test
  void aDiskWithoutIssues() throws IOException {
    Path disk = device("pci0/nvme/nvme0/nvme0n1", "259:0");
    write(disk, "integrity/format", "none\n");
    Path partition = device("pci0/nvme/nvme0/nvme0n1/nvme0n1p1", "259:1");
    write(partition, "partition", "1\n");
    assertThat(facts(NVME_PARTITION)).isEqualTo(DiskFacts.NONE);
    assertThat(facts(12 << 8)).as("no such device").isEqualTo(DiskFacts.NONE);
  }

  @Test
  void aPartitionHasTheFactsOfItsDisk() throws IOException {
    Path disk = device("virtual/nvme-subsystem/nvme-subsys0/nvme0n1", "259:0");
    write(disk, "integrity/format", "T10-DIF-TYPE1-CRC\n");
    Path partition = device("virtual/nvme-subsystem/nvme-subsys0/nvme0n1/nvme0n1p1", "259:1");
    write(partition, "partition", "1\n");
    assertThat(facts(NVME_PARTITION))
        .isEqualTo(new DiskFacts("", "nvme0n1", "nvme0n1 (T10-DIF-TYPE1-CRC)"));
  }

  @Test
  void disksBelowARaid() throws IOException {
    device("pci0/nvme/nvme0/nvme0n1", "259:0");
    Path second = device("virtual/nvme-subsystem/nvme-subsys1/nvme1n1", "259:2");
    write(second, "integrity/format", "nop\n");
    Path raid = device("virtual/block/md0", "9:0");
    write(raid, "md/level", "raid0\n");
    Files.createDirectories(raid.resolve("slaves"));
    Files.createSymbolicLink(
        raid.resolve("slaves/nvme0n1"), root.resolve("devices/pci0/nvme/nvme0/nvme0n1"));
    Files.createSymbolicLink(raid.resolve("slaves/nvme1n1"), second);
    assertThat(facts(RAID)).isEqualTo(new DiskFacts("raid0", "nvme1n1", "nvme1n1 (nop)"));
  }

  @Test
  void aStackThatLeadsBackEnds() throws IOException {
    Path mapped = device("virtual/block/dm-0", "253:0");
    Files.createDirectories(mapped.resolve("slaves"));
    Files.createSymbolicLink(mapped.resolve("slaves/dm-0"), mapped);
    assertThat(facts(253 << 8)).isEqualTo(DiskFacts.NONE);
  }

  @Test
  void numbersOfManyDevices() throws IOException {
    write(device("virtual/nvme-subsystem/nvme-subsys9/nvme9n1", "259:300"), "size", "1");
    assertThat(facts(HIGH_MINOR).multipath()).isEqualTo("nvme9n1");
  }

  @Test
  void aFileOfThisMachine() throws IOException {
    Path file = Files.writeString(root.resolve("file"), "x");
    assertThat(DiskFacts.of(Location.of(file)).protection()).isEmpty();
    assertThat(DiskFacts.of(Location.of(root.resolve("none")))).isEqualTo(DiskFacts.NONE);
    assertThat(DiskFacts.of(Location.of("https://localhost/file"))).isEqualTo(DiskFacts.NONE);
  }
}
