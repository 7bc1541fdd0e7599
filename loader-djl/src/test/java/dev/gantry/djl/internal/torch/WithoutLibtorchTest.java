// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Runs in a JVM of its own, whose class path lacks a jar.
class WithoutLibtorchTest {
  @TempDir Path folder;

  /// Asks DJL for the engine.
  static final class Program {
    private Program() {}

    public static void main(String[] arguments) {
      PyTorch.library();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "pytorch-native,Offline mode is enabled",
    "pytorch-engine,ai.djl.pytorch.engine.PtEngine"
  })
  void whatIsMissingIsOneLineWithThePageToRead(String jar, String reason) throws Exception {
    String path =
        Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
            .filter(entry -> !entry.contains(jar))
            .collect(Collectors.joining(File.pathSeparator));
    ProcessBuilder builder =
        ChildJvm.command(
            List.of("-Dai.djl.offline=true", "-DENGINE_CACHE_DIR=" + folder, "-cp", path),
            Program.class);
    builder.environment().remove("PYTORCH_LIBRARY_PATH");
    Process process = builder.redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isEqualTo(1);
    assertThat(output.lines().filter(line -> line.contains("Exception: ")).findFirst().orElse(""))
        .contains("DeviceUnavailableException: DJL has no PyTorch engine: ")
        .contains(reason)
        .endsWith("(see docs/on-a-gpu.md)");
  }
}
