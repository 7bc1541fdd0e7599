// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// A JVM of its own, with this one's class path.
final class ChildJvm {
  private ChildJvm() {}

  /// Runs a program to its good end.
  ///
  /// @param folder for the output meanwhile
  /// @param heap as `-Xmx` takes it
  /// @return what it wrote
  static String run(Path folder, String heap, Class<?> main, String... arguments)
      throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx" + heap, "--enable-native-access=ALL-UNNAMED"));
    command.addAll(List.of("--illegal-native-access=deny", "-Dai.djl.offline=true"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(List.of(arguments));
    Path output = Files.createTempFile(folder, "output-", ".txt");
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    boolean ended;
    try {
      ended = process.waitFor(2, TimeUnit.MINUTES);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while waiting for a JVM", e);
    } finally {
      process.destroyForcibly();
    }
    String text = Files.readString(output);
    assertThat(ended).as(text).isTrue();
    assertThat(process.exitValue()).as(text).isZero();
    return text;
  }
}
