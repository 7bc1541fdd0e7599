// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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
