// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.cli.internal.demo.CheckFailedException;
import dev.gantry.cli.internal.demo.SampleWeights;
import dev.gantry.cli.internal.digest.ArrayDigest;
import dev.gantry.cli.internal.digest.Digests;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.djl.Weights;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HexFormat;
import java.util.SplittableRandom;
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

  @Test
  void oneWrongByteIsFound() throws IOException {
    SampleWeights sample = SampleWeights.write(temporary, 40_000_000);
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(sample.index())) {
      NDList arrays = weights.load(manager);
      DemoCommand.checkDigests(sample, arrays);

      // In the last bytes of the last tensor.
      try (FileChannel shard = FileChannel.open(sample.floatShard(), StandardOpenOption.WRITE)) {
        shard.write(ByteBuffer.wrap(new byte[] {1, 2, 3}), shard.size() - 3);
      }
      // The first ones refuse a file that changed after its header was read.
      NDList changed = Weights.open(sample.index()).load(manager);
      assertThatThrownBy(() -> DemoCommand.checkDigests(sample, changed))
          .isInstanceOf(CheckFailedException.class)
          .hasMessageContaining("embeddings.7");
      NDList fewer = new NDList(arrays.subList(0, 3));
      assertThatThrownBy(() -> DemoCommand.checkDigests(sample, fewer))
          .hasMessageContaining("3 tensors were loaded, of 56");
    }
  }

  /// Pieces of 4 MiB, the last one shorter.
  @Test
  void digestIsOfAllPieces() {
    byte[] bytes = new byte[(9 << 20) + 5];
    new SplittableRandom(1).nextBytes(bytes);
    try (NDManager manager = NDManager.newBaseManager();
        NDArray array = manager.create(bytes)) {
      assertThat(ArrayDigest.of(array))
          .isEqualTo(HexFormat.of().formatHex(Digests.sha256().digest(bytes)));
    }
  }

  private static Stream<Path> filesOf(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.toList().stream();
    }
  }
}
