// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Runs each target on its seeds and on changes of its shortest seed.
/// `-Dgantry.fuzz.inputs=1000000` tries every truncation and every flipped bit even of seeds that
/// are longer than some hundred bytes.
class SmallFilesTest {
  private static final int INPUTS = Integer.getInteger("gantry.fuzz.inputs", 300);

  static List<Target> targets() {
    return Targets.all();
  }

  @AfterAll
  static void nothingIsHeld() {
    Check.requireNothingHeld();
  }

  @ParameterizedTest
  @MethodSource("targets")
  void everySeedHasAVerdict(Target target) {
    List<byte[]> seeds = target.seeds().all();
    assertThat(seeds.stream().filter(seed -> Check.run(target, seed)).count())
        .as("seeds that %s takes", target)
        .isPositive();
  }

  @ParameterizedTest
  @MethodSource("targets")
  void everyTruncationAndEveryFlippedBitHasAVerdict(Target target) {
    byte[] seed =
        target.seeds().all().stream()
            .filter(one -> one.length > 0 && Check.run(target, one))
            .min(Comparator.comparingInt(one -> one.length))
            .orElseThrow();
    int all = seed.length * (1 + Byte.SIZE);
    int step = Math.ceilDiv(all, INPUTS);
    for (int i = 0; i < all; i += step) {
      byte[] input =
          i < seed.length ? Arrays.copyOf(seed, i) : flipped(seed.clone(), i - seed.length);
      try {
        boolean _ = Check.run(target, input);
      } catch (Throwable fault) {
        throw new AssertionError(target + " of " + HexFormat.of().formatHex(input), fault);
      }
    }
  }

  private static byte[] flipped(byte[] bytes, int bit) {
    bytes[bit / Byte.SIZE] ^= (byte) (1 << bit % Byte.SIZE);
    return bytes;
  }
}
