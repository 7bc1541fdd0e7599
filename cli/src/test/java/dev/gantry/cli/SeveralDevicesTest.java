// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.core.internal.cufile.DriverSettings;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.stub.StubbedJvm;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Runs commands on a machine with two GPUs, for which stub libraries stand in.
class SeveralDevicesTest {
  @TempDir private Path folder;
  private Path file;

  @BeforeEach
  void make() throws IOException {
    file = folder.resolve("weights.safetensors");
    RandomCheckpoint.make(file, 3_000_000, 5, "F32");
  }

  private static ChildJvm.Result run(String peers, String... arguments) {
    return StubbedJvm.run(
        GantryCommand.class,
        Map.of("GANTRY_STUB_CUDA_DEVICES", "2", "GANTRY_STUB_CUDA_PEERS", peers),
        arguments);
  }

  @Test
  void loadSaysHowEachDeviceGotTheBytes() {
    ChildJvm.Result peers = run("1", "load", "--device", "cuda:0,cuda:1", file.toString());
    assertThat(peers.exit()).as("%s", peers).isZero();
    assertThat(peers.out())
        .contains("cuda:0,cuda:1")
        .contains("from other devices")
        .containsPattern("cuda:0 +[0-9,]+ bytes +[0-9,]+ bytes")
        .doesNotContain("does not let");
    ChildJvm.Result alone = run("0", "load", "--device", "cuda:0,cuda:1", file.toString());
    assertThat(alone.out()).contains("the driver does not let cuda:0 reach the memory of cuda:1");
  }

  @Test
  void whatComesPastTheCpuIsSaidByLoadAndByDoctor() {
    Map<String, String> direct = new HashMap<>(StubbedJvm.newCuFile());
    direct.put("GANTRY_STUB_CUDA_DEVICES", "2");
    direct.put("GANTRY_STUB_CUFILE_DIRECT", "1");
    ChildJvm.Result load =
        StubbedJvm.run(
            GantryCommand.class,
            direct,
            "load",
            "--cache",
            "direct",
            "--device",
            "cuda:0,cuda:1",
            file.toString());
    assertThat(load.exit()).as("%s", load).isZero();
    assertThat(load.out()).contains(" gds ").doesNotContain("staged");
    ChildJvm.Result doctor = StubbedJvm.run(GantryCommand.class, direct, "doctor", file.toString());
    assertThat(doctor.exit()).as("%s", doctor).isZero();
    assertThat(doctor.out())
        .contains("direct    yes")
        .containsPattern(file + " +gds ")
        .doesNotContain("no-nvidia-fs");
  }

  @Test
  void aDeviceIsNamedOnce() {
    CommandLineRun run = CommandLineRun.of("load", "--device", "cuda:0,cuda:0", file.toString());
    assertThat(run.exitCode()).isEqualTo(64);
    assertThat(run.err()).contains("[cuda:0, cuda:0]").doesNotContain("\tat ");
  }

  @Test
  void doctorSaysWhichDevicesReachEachOther() {
    assertThat(run("0", "doctor").out())
        .contains("the driver does not let cuda:1 reach the memory of cuda:0");
  }

  @Test
  void doctorSaysWhatItDoesNotKnowOfLibcufile() {
    Path settings = folder.resolve("cufile.json");
    ChildJvm.Result doctor =
        StubbedJvm.run(
            GantryCommand.class,
            Map.of(
                "GANTRY_STUB_CUFILE_VERSION", "1200", DriverSettings.VARIABLE, settings.toString()),
            "doctor");
    assertThat(doctor.out())
        .contains("libcufile.so.0 1.20, newer than 1.19, the newest that Gantry knows")
        .contains("cufile: CUFILE_ENV_PATH_JSON names " + settings + ": the file cannot be read")
        .contains("damaged-settings");
  }
}
