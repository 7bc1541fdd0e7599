// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Runs `demo` on weights of 16 MB.
@Tag("beside")
class DemoCommandTest {
  @TempDir private Path temporary;

  @AfterEach
  void nothingIsLeft() {
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  /// The test keeps the demo's folder and examines it. `.ci/run` runs the demo without `--keep`,
  /// and requires that nothing is left.
  @Test
  void theTourChecksAndComparesAndKeepsACheckpoint() throws IOException {
    CommandLineRun run =
        CommandLineRun.of("demo", "--bytes", 16_000_000, "--keep", "--dir", temporary);

    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(run.err()).isEmpty();
    assertThat(run.out())
        .containsPattern("Loaded 32 tensors of [\\d,]+ bytes to \\w+ .* SHA-256 of each")
        .contains("40 logits")
        .contains("Made 2000 images as raw shards", "Made 2000 images as TFRecord files")
        .containsPattern("by SIGKILL after step \\d+; its latest checkpoint was of step \\d+")
        .containsPattern("number \\d+ of its epoch")
        .containsPattern("Resumed .*: \\d+ more losses and all [\\d,]+ parameters .* bit for bit")
        .containsPattern("tells ([789]\\d|100)% of the images right")
        .containsPattern("The first \\d+ losses from both kinds of files are equal");

    try (Stream<Path> folders = Files.list(temporary)) {
      Path kept = folders.toList().getFirst();
      CommandLineRun inspect = CommandLineRun.of("inspect", kept);
      assertThat(inspect.exitCode()).as(inspect.err()).isZero();
      assertThat(inspect.out())
          .startsWith("safetensors, 4 file(s), 32 tensors")
          .contains("F32", "layers.0.weight", "layers.31.weight");
    }
  }

  /// The disk has too little space for the weights. The command must remove its folder
  /// nevertheless.
  @Test
  void noRoomIsExitCode74() throws IOException {
    CommandLineRun run =
        CommandLineRun.of("demo", "--bytes", Long.MAX_VALUE / 2, "--dir", temporary);
    assertThat(run.exitCode()).isEqualTo(74);
    assertThat(run.out()).isEmpty();
    assertThat(run.err().lines()).hasSize(1);
    assertThat(filesOf(temporary)).isEmpty();
  }

  private static Stream<Path> filesOf(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.toList().stream();
    }
  }

  @Test
  void aFolderThatTakesNoFolderIsNamedWithTheReason() {
    CommandLineRun run = CommandLineRun.of("demo", "--dir", "/proc");
    assertThat(run.err()).startsWith("gantry: mkdir failed: in /proc: errno 2 ENOENT");
    assertThat(run.exitCode()).isEqualTo(66);
  }
}
