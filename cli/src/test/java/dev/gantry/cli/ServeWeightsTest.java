// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.djl.Weights;
import dev.gantry.samples.SaveAndResume;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// Runs a server of weights in a process of its own, and commands that map its weights.
@EnabledOnOs(OS.LINUX)
@Timeout(120)
@Tag("beside")
class ServeWeightsTest {
  @TempDir private Path folder;
  private Path file;
  private Path socket;
  private Process server;

  @BeforeEach
  void serve() throws IOException {
    file = folder.resolve("weights.safetensors");
    RandomCheckpoint.make(file, 3_000_000, 5, "F32");
    socket = folder.resolve("private").resolve("weights.sock");
    server = start();
  }

  /// Starts a server. The server is ready when this returns.
  private Process start() throws IOException {
    return start(file);
  }

  private Process start(Path weights) throws IOException {
    Process process =
        ChildCommand.of(
                Stream.of(
                    "serve-weights",
                    weights.toString(),
                    "--device",
                    "host",
                    "--every",
                    "1",
                    "--socket",
                    socket.toString()))
            .redirectErrorStream(true)
            .start();
    BufferedReader lines = process.inputReader();
    StringBuilder all = new StringBuilder();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      all.append(line).append('\n');
      if (line.startsWith("clients open ")) {
        assertThat(line).isEqualTo("clients open " + location());
        return process;
      }
    }
    throw new AssertionError("the server ended: " + all);
  }

  @AfterEach
  void end() throws InterruptedException {
    server.destroyForcibly().waitFor();
  }

  private String location() {
    return "gantry-resident://" + socket;
  }

  private static Object digests(Object weights) {
    return TestSamples.json(TestSamples.run("digest", "--json", "--device", "host", weights))
        .get("tensors");
  }

  /// Returns the number of memory files that a process has as descriptors or mappings.
  private static long memoryFiles(ProcessHandle process) throws IOException {
    Path folder = Path.of("/proc", Long.toString(process.pid()));
    long count = 0;
    try (Stream<Path> files = Files.list(folder.resolve("fd"))) {
      for (Path one : files.toList()) {
        try {
          count += Files.readSymbolicLink(one).toString().contains("gantry-resident") ? 1 : 0;
        } catch (IOException _) {
          // The process has closed the descriptor meanwhile.
        }
      }
    }
    try (Stream<String> maps = Files.lines(folder.resolve("maps"))) {
      return count + maps.filter(line -> line.contains("gantry-resident")).count();
    }
  }

  @Test
  void aNewCheckpointIsForNewClients() throws Exception {
    Path checkpoints = folder.resolve("checkpoints");
    SaveAndResume.main(new String[] {checkpoints.toString(), "1"});
    server.destroyForcibly().waitFor();
    server = start(checkpoints);
    long before = memoryFiles(ProcessHandle.current());
    long ofServer = memoryFiles(server.toHandle());
    try (NDManager manager = NDManager.newBaseManager();
        Weights first = Weights.open(location())) {
      NDArray old = first.load(manager).getFirst();
      float[] values = old.toFloatArray();

      SaveAndResume.main(new String[] {checkpoints.toString(), "2"});
      BufferedReader lines = server.inputReader();
      String line = lines.readLine();
      while (!line.startsWith("version 2: ")) {
        line = lines.readLine();
      }
      // The server prints the line before it gives clients the new version.
      float[] now = values;
      while (Arrays.equals(now, values)) {
        try (Weights second = Weights.open(location());
            NDList list = second.load(manager)) {
          now = list.getFirst().toFloatArray();
        }
      }
      assertThat(old.toFloatArray()).isEqualTo(values);
      assertThat(memoryFiles(server.toHandle())).isEqualTo(ofServer);
    }
    assertThat(memoryFiles(ProcessHandle.current())).isEqualTo(before);
  }

  @Test
  void aKilledServersSocketIsTakenByTheNext() throws Exception {
    assertThat(digests(location())).isEqualTo(digests(file));
    assertThat(TestSamples.run("inspect", location()).out()).contains("F32");
    assertThat(TestSamples.fail(64, "load", location(), "--verify").err())
        .isEqualTo(
            "gantry: --verify must not be given for resident weights (was given for %s): nothing is"
                + " read; verify the files that their server loads\n",
            location());
    assertThat(TestSamples.fail(64, "load", location(), "--transport", "gds").err())
        .isEqualTo(
            "gantry: --transport must not be given for resident weights (was given for %s): nothing"
                + " is read\n",
            location());
    assertThat(TestSamples.fail(64, "serve-weights", location()).err())
        .isEqualTo(
            "gantry: FOLDER must be files (was %s): another server keeps these in memory\n",
            location());

    CommandLineRun second =
        TestSamples.fail(64, "serve-weights", file, "--device", "host", "--socket", socket);
    assertThat(second.err()).contains(socket.toString()).doesNotContain("\tat ");

    server.destroyForcibly().waitFor();
    CommandLineRun alone = TestSamples.fail(74, "load", location(), "--device", "host");
    assertThat(alone.err()).contains("no server of resident weights listens there");
    assertThat(Files.exists(socket)).isTrue();
    server = start();
    assertThat(digests(location())).isEqualTo(digests(file));
  }
}
