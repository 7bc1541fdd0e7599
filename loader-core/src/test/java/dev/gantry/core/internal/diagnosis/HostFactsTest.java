// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.diagnosis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.diagnosis.HostFacts.State;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Facts about a host, read from made-up files of the kernel's file systems.
class HostFactsTest {
  private static final String BRIDGE = "0x060400\n";
  private static final String DISK = "0x010802\n";
  private static final int ACS = 0x000d;
  private static final int AER = 0x0001;

  @TempDir Path root;

  private void write(String file, String text) throws IOException {
    Files.createDirectories(root.resolve(file).getParent());
    Files.writeString(root.resolve(file), text);
  }

  private void device(String address, String kind, byte[] config) throws IOException {
    write("sys/bus/pci/devices/" + address + "/class", kind);
    Files.write(root.resolve("sys/bus/pci/devices/" + address + "/config"), config);
  }

  /// Returns the configuration space of a bridge with two extended capabilities.
  private static byte[] config(int second, int control) {
    ByteBuffer space = ByteBuffer.allocate(4096).order(ByteOrder.LITTLE_ENDIAN);
    space.putInt(0x100, AER | 1 << 16 | 0x140 << 20);
    space.putInt(0x140, second | 1 << 16);
    space.putShort(0x146, (short) control);
    return space.array();
  }

  @Test
  void aMachineThatSaysNothing() {
    assertThat(HostFacts.look(root))
        .isEqualTo(
            new HostFacts(State.UNKNOWN, State.UNKNOWN, false, "", false, "", State.UNKNOWN));
  }

  @Test
  void theIommu() throws IOException {
    Files.createDirectories(root.resolve("sys/class/iommu"));
    assertThat(HostFacts.look(root).iommu()).isEqualTo(State.OFF);
    write("sys/class/iommu/dmar0/name", "dmar0");
    assertThat(HostFacts.look(root).iommu()).as("no command line").isEqualTo(State.UNKNOWN);
    write("proc/cmdline", "quiet intel_iommu=on\n");
    assertThat(HostFacts.look(root).iommu()).isEqualTo(State.ON);
    write("proc/cmdline", "intel_iommu=on iommu=pt\n");
    assertThat(HostFacts.look(root).iommu()).isEqualTo(State.PASS_THROUGH);
  }

  @Test
  void accessControlOfOneBridgeIsEnough() throws IOException {
    device("0000:00:01.0", BRIDGE, config(ACS, 0));
    assertThat(HostFacts.look(root).acs()).isEqualTo(State.OFF);
    device("0000:00:02.0", BRIDGE, config(ACS, 1 << 2));
    assertThat(HostFacts.look(root).acs()).isEqualTo(State.ON);
  }

  @Test
  void sourceValidationRedirectsNothing() throws IOException {
    device("0000:00:01.0", BRIDGE, config(ACS, 1));
    assertThat(HostFacts.look(root).acs()).isEqualTo(State.OFF);
  }

  @Test
  void bridgesWithoutAccessControlAndOtherDevices() throws IOException {
    device("0000:00:01.0", BRIDGE, config(0x0003, 0xff));
    device("0000:00:02.0", DISK, config(ACS, 1 << 2));
    assertThat(HostFacts.look(root).acs()).isEqualTo(State.OFF);
  }

  @Test
  void onlyRootReadsAllOfABridge() throws IOException {
    device("0000:00:01.0", BRIDGE, new byte[64]);
    assertThat(HostFacts.look(root).acs()).isEqualTo(State.UNKNOWN);
  }

  @Test
  void aListOfCapabilitiesThatLeadsBackEnds() throws IOException {
    byte[] config = new byte[4096];
    ByteBuffer.wrap(config).order(ByteOrder.LITTLE_ENDIAN).putInt(0x100, AER | 0x100 << 20);
    device("0000:00:01.0", BRIDGE, config);
    assertThat(HostFacts.look(root).acs()).isEqualTo(State.OFF);
  }

  @Test
  void theKernelsVersion() throws IOException {
    assertThat(HostFacts.look(root).isKernelSince(1, 0)).isFalse();
    write("proc/sys/kernel/osrelease", "6.17.0-23-generic\n");
    HostFacts host = HostFacts.look(root);
    assertThat(host.kernel()).isEqualTo("6.17.0-23-generic");
    assertThat(host.isKernelSince(6, 17)).isTrue();
    assertThat(host.isKernelSince(6, 18)).isFalse();
    assertThat(host.isKernelSince(5, 99)).isTrue();
    assertThat(host.isKernelSince(7, 0)).isFalse();
  }

  @Test
  void readsByNvidiaFsMayHangOnNewKernels() throws IOException {
    write("proc/sys/kernel/osrelease", "6.17.1\n");
    assertThat(HostFacts.mayHang(root)).isFalse();
    write("proc/driver/nvidia-fs/version", "version: 2.30\n");
    assertThat(HostFacts.mayHang(root)).isTrue();
    assertThat(HostFacts.look(root).mayHang()).isTrue();
    write("proc/sys/kernel/osrelease", "6.16.9\n");
    assertThat(HostFacts.mayHang(root)).isFalse();
    assertThat(HostFacts.look(root).mayHang()).isFalse();
  }

  @Test
  void theDriversSettings() throws IOException {
    write("proc/driver/nvidia/params", "EnableMSI: 1\nRegistryDwords: \"\"\n");
    assertThat(HostFacts.look(root).staticBar1()).isEqualTo(State.OFF);
    write("proc/driver/nvidia/params", "RegistryDwords: \"ForceP2P=0;RMForceStaticBar1=1\"\n");
    assertThat(HostFacts.look(root).staticBar1()).isEqualTo(State.ON);
  }

  @Test
  void theModuleAndTheRecords() throws IOException {
    write("proc/driver/nvidia-fs/version", "version: 2.24\n");
    write("sys/module/nvidia_fs/version", "2.24.3\n");
    Files.createDirectories(root.resolve("run/udev/data"));
    assertThat(HostFacts.look(root).nvidiaFs()).isTrue();
    assertThat(HostFacts.look(root).nvidiaFsVersion()).isEqualTo("2.24.3");
    assertThat(HostFacts.look(root).udev()).isTrue();
  }
}
