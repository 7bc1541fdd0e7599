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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The tour, on 16 MB.
class DemoCommandTest {
  @TempDir private Path temporary;

  @AfterEach
  void nothingIsLeft() {
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @Test
  void tourChecksAndComparesAndLeavesNothing() throws IOException {
    CommandLineRun run = CommandLineRun.of("demo", "--bytes", 16_000_000, "--dir", temporary);

    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(run.err()).isEmpty();
    assertThat(run.out())
        .contains("SHA-256 of all 56 tensors", "40 logits", "gantry", "DJL's decode", "BF16")
        .containsPattern("by SIGKILL in its step \\d+: the latest checkpoint was of step \\d+")
        .containsPattern("resumed from there .*; made \\d+ more steps")
        .containsPattern("equal .* bit for bit: the \\d+ losses, and the 8 parameters")
        .containsPattern("equal .* bit for bit: the \\d+ losses, and the 6 parameters")
        .contains("2016 images of 10 classes as raw shards, and 504 others")
        .contains("2016 images of 10 classes as TFRecord files, and 504 others")
        .containsPattern("step \\d+ was number \\d+ of the 63 in its epoch")
        .containsPattern("learned ([789]\\d|100)% of the test images .* chance gives 10%")
        .containsPattern("equal .* from raw shards, bit for bit: the first \\d+ losses")
        .containsPattern("save +all shards, 16 MB +gantry +disk")
        .containsPattern("save +F32 shard, 4 MB +DJL's encode +disk");
    assertThat(filesOf(temporary)).isEmpty();
  }

  @Test
  void whatIsKeptIsACheckpoint() throws IOException {
    CommandLineRun run =
        CommandLineRun.of("demo", "--bytes", 2_000_000, "--keep", "--dir", temporary);
    assertThat(run.exitCode()).as(run.err()).isZero();

    try (Stream<Path> folders = Files.list(temporary)) {
      Path kept = folders.toList().getFirst();
      CommandLineRun inspect = CommandLineRun.of("inspect", kept);
      assertThat(inspect.exitCode()).as(inspect.err()).isZero();
      assertThat(inspect.out())
          .startsWith("safetensors, 4 file(s), 56 tensors")
          .contains("BF16", "F32", "layers.0.mlp.weight", "embeddings.7");
    }
  }

  /// As on a full disk: the folder goes nevertheless.
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
}
