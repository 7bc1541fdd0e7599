// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class SampleBitsTest {
  private static List<Long> numbers(SampleBits bits) {
    return LongStream.range(0, bits.count()).map(bits::number).boxed().toList();
  }

  @Test
  void countsAndFindsWhatABitSetFinds() {
    Random random = new Random(1);
    for (int round = 0; round < 200; round++) {
      int size = random.nextInt(3000) + 1;
      double density = random.nextDouble() * random.nextDouble();
      BitSet expected = new BitSet();
      IntStream.range(0, size).filter(_ -> random.nextDouble() < density).forEach(expected::set);
      SampleBits bits = SampleBits.of(size, all -> expected.stream().asLongStream().forEach(all));
      assertThat(numbers(bits)).isEqualTo(expected.stream().asLongStream().boxed().toList());
      for (int number : new int[] {0, size / 3, size - 1, size}) {
        assertThat(bits.countBelow(number)).isEqualTo(expected.get(0, number).cardinality());
        if (expected.nextSetBit(number) >= 0) {
          assertThat(bits.next(number)).isEqualTo(expected.nextSetBit(number));
        }
      }
    }
  }

  @Test
  void partsOfASeedHaveEachSampleOnce() {
    for (long samples : new long[] {0, 1, 7, 1000, 10_007}) {
      List<Integer> ratio = List.of(7, 2, 1);
      List<Long> all = new ArrayList<>();
      for (int part = 0; part < ratio.size(); part++) {
        SampleBits bits = SampleBits.part(samples, 42, part, ratio);
        assertThat(bits.count()).isBetween(samples * ratio.get(part) / 10, samples * 9 / 10 + 1);
        assertThat(SampleBits.part(samples, 42, part, ratio).identity()).isEqualTo(bits.identity());
        all.addAll(numbers(bits));
      }
      assertThat(all)
          .containsExactlyInAnyOrderElementsOf(LongStream.range(0, samples).boxed().toList());
    }
    SampleBits one = SampleBits.part(1000, 1, 0, List.of(1, 1));
    assertThat(one.identity()).isNotEqualTo(SampleBits.part(1000, 2, 0, List.of(1, 1)).identity());
    // The samples of a part are spread over all samples.
    assertThat(one.countBelow(500)).isBetween(200L, 300L);
  }

  @Test
  void numbersThatNoSampleHasAreRefused() {
    assertThatThrownBy(() -> SampleBits.of(5, all -> all.accept(5)))
        .isInstanceOf(MisuseException.class)
        .hasMessage("there is no sample 5 among 5");
    assertThatThrownBy(() -> SampleBits.of(5, all -> all.accept(-1)))
        .isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> SampleBits.of(1L << 40, _ -> {}))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("only of up to 8589934592");
  }

  @Test
  void samplesAreDrawnAsOftenAsTheirWeightsSay() {
    SampleWeights weights = SampleWeights.of(7, new double[] {0, 1, 0, 0, 3, 0});
    int[] counts = new int[6];
    for (int draw = 0; draw < 40_000; draw++) {
      counts[(int) weights.sample(draw % 4, draw)]++;
    }
    assertThat(counts[1]).isBetween(9_500, 10_500);
    assertThat(counts[4]).isBetween(29_500, 30_500);
    assertThat(counts[1] + counts[4]).isEqualTo(40_000);
    assertThat(SampleWeights.of(8, new double[] {1}).identity())
        .isNotEqualTo(SampleWeights.of(7, new double[] {1}).identity());
  }

  @Test
  void weightsThatDrawNothingAreRefused() {
    for (double[] wrong :
        List.of(
            new double[] {},
            new double[] {0, 0},
            new double[] {1, -1},
            new double[] {Double.NaN},
            new double[] {Double.MAX_VALUE, Double.MAX_VALUE})) {
      assertThatThrownBy(() -> SampleWeights.of(1, wrong)).isInstanceOf(MisuseException.class);
    }
  }
}
