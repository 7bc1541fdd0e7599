// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.cli.internal.bench.RandomCheckpoint;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// A server of weights in a process of its own, and commands that map them.
@EnabledOnOs(OS.LINUX)
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

  /// Ready when this returns.
  private Process start() throws IOException {
    Process process =
        new ProcessBuilder(
                List.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "--enable-native-access=ALL-UNNAMED",
                    "-cp",
                    System.getProperty("java.class.path"),
                    GantryCommand.class.getName(),
                    "serve-weights",
                    file.toString(),
                    "--device",
                    "host",
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

  @Test
  void aKilledServersSocketIsTakenByTheNext() throws Exception {
    assertThat(digests(location())).isEqualTo(digests(file));
    assertThat(TestSamples.run("inspect", location()).out()).contains("F32");

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
