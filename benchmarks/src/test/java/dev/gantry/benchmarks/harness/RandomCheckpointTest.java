// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.benchmarks.harness.RandomCheckpoint.Tensor;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.zip.DeflaterOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Files of random bytes that are safetensors.
class RandomCheckpointTest {
  @TempDir private Path folder;

  @Test
  void tensorsAreEqualAndMakeUpTheBytes() throws IOException {
    Path file = folder.resolve("file.safetensors");

    assertThat(RandomCheckpoint.make(file, 1_000_003, 7, "F32")).isEqualTo(7 * 142_856);
    assertThat(SafetensorsOpener.open(GantrySession.shared(), file).tensors().values())
        .hasSize(7)
        .allMatch(tensor -> tensor.bytes() == 142_856);
  }

  @Test
  void tensorsMayHaveShapesAndBitsOfTheirOwn() throws IOException {
    Path file = folder.resolve("file.safetensors");
    long bytes =
        RandomCheckpoint.make(
            file,
            4096,
            List.of(
                new Tensor("a", "BF16", List.of(3L, 5L), _ -> 0),
                new Tensor("b", "F8_E4M3", List.of(7L), _ -> -1)));

    assertThat(bytes).isEqualTo(37);
    byte[] all = Files.readAllBytes(file);
    assertThat(all).hasSize(4096 + 37);
    assertThat(Arrays.copyOfRange(all, 4096, 4096 + 30)).containsOnly(0);
    assertThat(Arrays.copyOfRange(all, 4096 + 30, all.length)).containsOnly(-1);
    assertThat(SafetensorsOpener.open(GantrySession.shared(), file).tensors().values())
        .extracting(tensor -> tensor.name() + " " + tensor.bytes())
        .containsExactly("a 30", "b 7");
  }

  @Test
  void bytesCannotBeCompressed() throws IOException {
    Path file = folder.resolve("file.safetensors");
    var _ = RandomCheckpoint.make(file, 9 << 20, 1, "BF16");
    byte[] bytes = Files.readAllBytes(file);
    ByteArrayOutputStream packed = new ByteArrayOutputStream();
    try (DeflaterOutputStream deflater = new DeflaterOutputStream(packed)) {
      deflater.write(bytes);
    }

    assertThat(packed.size()).isGreaterThan(bytes.length - bytes.length / 100);
  }
}
