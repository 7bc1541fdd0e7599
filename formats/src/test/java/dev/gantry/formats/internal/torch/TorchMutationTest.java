// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.weights.TensorValues;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Damaged files are refused or read, and nothing worse. The system property `gantry.mutations` gives the
/// number of them, `gantry.seed` the seed.
class TorchMutationTest {
  private static final Path CORPUS = Path.of("src/test/resources/corpus");

  /// Tensors that a damaged file makes larger are not read.
  private static final long READ_BYTES = 1 << 20;

  @TempDir private Path folder;

  private static List<byte[]> files() throws IOException {
    try (Stream<Path> torch = Files.list(CORPUS.resolve("torch"));
        Stream<Path> kinds = Files.list(CORPUS.resolve("torch-kinds"))) {
      return Stream.concat(torch, kinds)
          .filter(file -> file.toString().matches(".*\\.(pth?|bin)"))
          .sorted()
          .map(file -> {
            try {
              return Files.readAllBytes(file);
            } catch (IOException e) {
              throw new AssertionError(e);
            }
          })
          .toList();
    }
  }

  @Test
  void aDamagedFileIsRefusedOrRead() throws IOException {
    List<byte[]> files = files();
    Path file = folder.resolve("damaged.pt");
    Random random = new Random(Long.getLong("gantry.seed", 20261124));
    int mutations = Integer.getInteger("gantry.mutations", 3000);
    int refused = 0;
    for (int i = 0; i < mutations; i++) {
      byte[] damaged = damaged(files.get(i % files.size()), random);
      Files.write(file, damaged);
      try {
        read(file);
      } catch (MalformedFileException fault) {
        refused++;
        assertThat(fault.file()).isEqualTo(Location.of(file));
        assertThat(fault.offset()).isBetween(0L, (long) damaged.length);
        assertThat(fault.getMessage()).doesNotContain("\n");
      } catch (RuntimeException | StackOverflowError | OutOfMemoryError e) {
        Files.write(Path.of(System.getProperty("java.io.tmpdir"), "gantry-damaged.pt"), damaged);
        throw new AssertionError("mutation " + i, e);
      }
    }
    assertThat(refused).isBetween(mutations / 10, mutations);
  }

  /// Damages a file anywhere, or where its pickle or its directory mostly is.
  private static byte[] damaged(byte[] whole, Random random) {
    byte[] damaged = whole.clone();
    int bytes = random.nextBoolean() ? whole.length : Math.min(whole.length, 900);
    int start = random.nextInt(3) == 0 ? whole.length - bytes : 0;
    for (int change = 0; change <= random.nextInt(4); change++) {
      int at = start + random.nextInt(bytes);
      switch (random.nextInt(5)) {
        case 0 -> damaged[at] = (byte) random.nextInt();
        case 1 -> damaged[at] ^= (byte) (1 << random.nextInt(8));
        case 2 ->
            damaged[at] = (byte) "(0.12NTtdsuabcR}]q\u0080\u0081\u0088".charAt(random.nextInt(20));
        case 3 ->
            ByteBuffer.wrap(damaged)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(
                    Math.min(at, damaged.length - Long.BYTES),
                    random.nextLong() >> random.nextInt(Long.SIZE));
        default -> {
          int from = start + random.nextInt(bytes);
          int count = Math.min(random.nextInt(24), whole.length - Math.max(at, from));
          System.arraycopy(whole, from, damaged, at, count);
        }
      }
    }
    return random.nextInt(10) == 0 ? Arrays.copyOf(damaged, random.nextInt(whole.length)) : damaged;
  }

  private static void read(Path file) {
    WeightsCatalogue weights = WeightsFormats.open(GantrySession.shared(), Location.of(file));
    for (StoredTensor tensor : weights.tensors().values()) {
      if (tensor.bytes() < READ_BYTES) {
        assertThat(TensorValues.bytes(tensor)).hasSize((int) tensor.bytes());
      }
    }
    weights.verify(GantrySession.shared());
  }
}
