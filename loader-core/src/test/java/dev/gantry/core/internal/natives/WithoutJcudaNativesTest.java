// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A program on the CPU may omit the 9.5 MB of JCuda's native libraries.
class WithoutJcudaNativesTest {
  @TempDir private Path folder;

  /// Prints whether the driver is available, twice.
  static final class Program {
    private Program() {}

    public static void main(String[] arguments) {
      System.out.println(CudaDriver.load());
      System.out.println(CudaDriver.load());
    }
  }

  @Test
  void theDriverIsAbsentAndSaysWhy() throws Exception {
    String path =
        Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
            .filter(entry -> !entry.contains("jcuda-natives"))
            .collect(Collectors.joining(File.pathSeparator));
    Process process =
        ChildJvm.command(
                // JCuda unpacks its libraries into this folder, and would find earlier copies
                // there.
                List.of("-Djava.io.tmpdir=" + folder, "-cp", path), Program.class)
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    assertThat(output.lines())
        .hasSize(2)
        .allMatch(line -> line.contains("org.jcuda:jcuda-natives is missing"));
  }
}
