// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Damaged headers are refused in one line, or describe no more bytes than the file has.
/// `-Dgantry.mutations=1000000` looks longer.
class GgufMutationTest {
  private static final long[] ODD = {0, 1, -1, 2, 255, 1L << 31, 1L << 32, 1L << 62, 1L << 63, 5};

  @TempDir Path folder;

  @Test
  void damagedHeadersAreRefusedOrRead() throws IOException {
    int count = Integer.getInteger("gantry.mutations", 3000);
    long seed = Long.getLong("gantry.seed", System.nanoTime());
    Random random = new Random(seed);
    List<byte[]> whole = originals();
    Path file = folder.resolve("m.gguf");
    int read = 0;
    for (int i = 0; i < count; i++) {
      byte[] bytes = mutated(whole.get(random.nextInt(whole.size())).clone(), random);
      Files.write(file, bytes);
      try {
        WeightsCatalogue weights = WeightsFormats.open(GantrySession.shared(), Location.of(file));
        read++;
        assertThat(GgufHubNames.of(weights).tensors()).hasSameSizeAs(weights.tensors());
        assertThat(weights.tensors().values().stream().mapToLong(t -> t.extent().length()).sum())
            .as("seed %d, mutation %d", seed, i)
            .isLessThanOrEqualTo(bytes.length);
      } catch (MalformedFileException fault) {
        assertThat(fault.getMessage()).doesNotContain("\n");
        assertThat(fault.offset())
            .as("seed %d, mutation %d", seed, i)
            .isBetween(0L, (long) bytes.length);
      }
    }
    assertThat(read).as("seed %d", seed).isBetween(1, count - 1);
  }

  private static List<byte[]> originals() throws IOException {
    byte[] texts =
        HandmadeGguf.joined(
            HandmadeGguf.number(8, 4),
            HandmadeGguf.number(2, 8),
            HandmadeGguf.text("a"),
            HandmadeGguf.text("b"));
    byte[] nested =
        HandmadeGguf.joined(HandmadeGguf.number(9, 4), HandmadeGguf.number(1, 8), texts);
    byte[] made =
        new HandmadeGguf()
            .note("n", 9, nested)
            .note("general.alignment", 4, HandmadeGguf.number(32, 4))
            .note("split.count", 2, HandmadeGguf.number(1, 2))
            .note("general.architecture", 8, HandmadeGguf.text("llama"))
            .note("llama.attention.head_count", 4, HandmadeGguf.number(2, 4))
            .tensor("a", 0, new byte[96], 3, 4, 2)
            .tensor("b", 12, new byte[288], 256, 2)
            .tensor("c", 24, new byte[5], 5)
            .tensor("blk.0.attn_q.weight", 2, new byte[144], 32, 8)
            .tensor("blk.0.attn_k.weight", 0, new byte[32], 2, 4)
            .bytes();
    Path corpus = Path.of("src/test/resources/corpus/gguf");
    return Stream.of(
            made,
            Files.readAllBytes(corpus.resolve("metadata.gguf")),
            Files.readAllBytes(corpus.resolve("no-tensors.gguf")))
        .toList();
  }

  private static byte[] mutated(byte[] bytes, Random random) {
    for (int change = 0; change <= random.nextInt(3); change++) {
      int at = random.nextInt(bytes.length);
      switch (random.nextInt(5)) {
        case 0 -> bytes[at] = (byte) random.nextInt();
        case 1 -> bytes[at] ^= (byte) (1 << random.nextInt(8));
        case 2 -> {
          if (at + 8 <= bytes.length) {
            ByteBuffer.wrap(bytes)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(at, ODD[random.nextInt(ODD.length)]);
          }
        }
        case 3 -> {
          int from = random.nextInt(bytes.length);
          int length = Math.min(random.nextInt(40), bytes.length - Math.max(at, from));
          System.arraycopy(bytes, from, bytes, at, length);
        }
        default -> {
          if (random.nextInt(4) == 0) {
            bytes = java.util.Arrays.copyOf(bytes, Math.max(1, at));
          }
        }
      }
    }
    return bytes;
  }
}
