// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SharedSessionTest {
  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aWrongSettingIsOneErrorEachTimeAndNotTheEndOfTheClass(boolean withFolder)
      throws IOException, InterruptedException {
    ProcessBuilder program =
        ChildJvm.command(List.of(), SharedSessionProgram.class).redirectErrorStream(true);
    program.environment().put("GANTRY_CACHE", withFolder ? folder.toString() : "");
    program.environment().put("GANTRY_CACHE_BYTES", "much");
    Process process = program.start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    String refused =
        "refused: --cache-bytes (GANTRY_CACHE_BYTES) must be a number of bytes, MB, GB or TB, and"
            + " more than 0 (was much)";
    assertThat(output.lines().filter(line -> line.matches("(refused|one|two|opened).*")))
        .containsExactly(refused, refused, "one session");
  }
}
