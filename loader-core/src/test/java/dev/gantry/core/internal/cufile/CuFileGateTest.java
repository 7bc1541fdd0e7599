// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.gantry.core.Transport;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFile.Version;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.stub.StubControls;
import dev.gantry.testing.stub.StubbedJvm;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Whether the driver is asked at all.
class CuFileGateTest {
  private static final Optional<Version> OLD = Optional.of(new Version(1, 15));
  private static final Optional<Version> NEW = Optional.of(new Version(1, 16));
  private static final String ON = "{\"properties\": {\"use_pci_p2pdma\" : true}}";
  private static final String OFF = "{\"properties\": {\"use_pci_p2pdma\": false}}";
  private static final String DISK = "/dev/vda / ext4 rw 0 0\n";

  @TempDir Path root;

  @BeforeEach
  void makeMachine() throws IOException {
    Files.createDirectories(root.resolve("sys/class/block"));
    mount(DISK);
  }

  private void mount(String mounts) throws IOException {
    Files.writeString(Files.createDirectories(root.resolve("proc/self")).resolve("mounts"), mounts);
  }

  @Test
  void nvidiaFsMayServe() throws IOException {
    Files.writeString(
        Files.createDirectories(root.resolve("proc/driver/nvidia-fs")).resolve("version"), "2.25");
    assertThat(CuFileGate.absence(root, OLD, OFF)).isEmpty();
    assertThat(CuFileGate.absence(root, NEW, OFF)).isEmpty();
  }

  @Test
  void anOldLibraryNeedsTheSetting() throws IOException {
    Files.createDirectories(root.resolve("sys/class/nvme/nvme0"));
    assertThat(CuFileGate.absence(root, OLD, ON)).isEmpty();
    for (String settings : List.of(OFF, "")) {
      assertThat(CuFileGate.absence(root, OLD, settings))
          .isEqualTo(
              "neither nvidia-fs nor peer-to-peer NVMe is available, so cuFile would copy through"
                  + " the CPU (use_pci_p2pdma is not on in cufile.json)");
      assertThat(CuFileGate.absence(root, Optional.empty(), settings)).isNotEmpty();
      assertThat(CuFileGate.absence(root, NEW, settings)).isEmpty();
    }
  }

  @Test
  void aMachineWithoutAnyServedDiskHasNoPeerToPeerDma() throws IOException {
    String none =
        "neither nvidia-fs nor peer-to-peer NVMe is available, so cuFile would copy through the CPU"
            + " (there is no NVMe disk, and no file system of virtiofs or NFS)";
    assertThat(CuFileGate.absence(root, NEW, ON)).isEqualTo(none);
    Path controllers = Files.createDirectories(root.resolve("sys/class/nvme"));
    assertThat(CuFileGate.absence(root, NEW, ON)).isEqualTo(none);
    Files.createDirectory(controllers.resolve("nvme0"));
    assertThat(CuFileGate.absence(root, NEW, ON)).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "host:/data /data nfs rw 0 0",
        "host:/data /data nfs4 rw 0 0",
        "tag /data virtiofs rw 0 0"
      })
  void otherFileSystemsMayBeServed(String mount) throws IOException {
    mount(DISK + mount + "\n");
    assertThat(CuFileGate.absence(root, NEW, "")).isEmpty();
  }

  @Test
  void whatCannotBeSeenIsLeftToTheDriver() throws IOException {
    Files.delete(root.resolve("sys/class/block"));
    assertThat(CuFileGate.absence(root, NEW, "")).isEmpty();
    Files.createDirectory(root.resolve("sys/class/block"));
    Files.delete(root.resolve("proc/self/mounts"));
    assertThat(CuFileGate.absence(root, NEW, "")).isEmpty();
  }

  /// Asks for `gds`, and prints the reason of its absence and how often the driver was opened.
  static final class Asking {
    public static void main(String[] arguments) {
      try (TransferEngine engine = new TransferEngine(FileCalls.ofPlatform(), List.of(), null)) {
        Availability<CuFile> driver = engine.cuFile().driver(Transport.GDS);
        System.out.println(
            driver instanceof Availability.Absent<CuFile>(String reason) ? reason : "");
        System.out.println(StubControls.cuFile().calls("cuFileDriverOpen"));
      }
    }
  }

  private ChildJvm.Result ask(String settings) throws IOException {
    Path file = Files.writeString(root.resolve("cufile.json"), settings);
    return StubbedJvm.run(
        Asking.class, Map.of(CuFile.VARIABLE, "", DriverSettings.VARIABLE, file.toString()));
  }

  @Test
  void aDriverThatCannotServeIsNotOpened() throws IOException {
    assumeFalse(CuFileGate.hasNvidiaFs(Path.of("/")), "nvidia-fs may serve");
    ChildJvm.Result result = ask(OFF);
    assertThat(result.out())
        .as("%s", result)
        .endsWith(" (use_pci_p2pdma is not on in cufile.json)\n0\n");
  }

  @Test
  void aDriverThatMayServeIsOpened() throws IOException {
    ChildJvm.Result result = ask(ON);
    assertThat(result.out()).as("%s", result).endsWith("1\n");
  }
}
