// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.formats.internal.order.ShuffleDraws.Pause;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class ShuffleDrawsPropertyTest {
  /// The test computes the contents draw by draw, with random pauses.
  @Property
  void theContentsAreToldWithoutASampleBeingRead(
      @ForAll long seed,
      @ForAll @IntRange(min = 1, max = 60) int filled,
      @ForAll @IntRange(min = 1, max = 400) int draws,
      @ForAll Random random) {
    ShuffleDraws order = new ShuffleDraws(seed, 3);
    List<Long> slots = new ArrayList<>();
    for (long number = 0; number < filled; number++) {
      slots.add(number);
    }
    List<Pause> pauses = new ArrayList<>();
    long read = filled;
    long pausedUntil = 0;
    for (int draw = 0; draw < draws && !slots.isEmpty(); draw++) {
      int slot = order.slot(draw, slots.size());
      slots.set(slot, -1L);
      assertThat(order.contents(filled, pauses, draw + 1L)).containsExactly(longs(slots));
      assertThat(ShuffleDraws.read(filled, pauses, draw + 1L)).isEqualTo(read);
      if (draw >= pausedUntil && random.nextInt(40) == 0) {
        Pause pause = new Pause(draw, 1 + random.nextInt(slots.size()));
        pauses.add(pause);
        pausedUntil = pause.first() + pause.draws();
      }
      if (draw < pausedUntil) {
        slots.set(slot, slots.getLast());
        slots.removeLast();
      } else {
        slots.set(slot, read++);
      }
    }
  }

  private static long[] longs(List<Long> numbers) {
    return numbers.stream().mapToLong(Long::longValue).toArray();
  }

  /// The buffer has the usual size, and there may have been any number of draws.
  @Example
  void theContentsOfALargeBufferLongAfterAreToldAtOnce() {
    long draws = 1L << 50;
    long[] contents = new ShuffleDraws(1, 2).contents(1 << 16, List.of(), draws);
    long slots = 1 << 16;
    assertThat(contents).doesNotHaveDuplicates();
    assertThat(LongStream.of(contents).filter(number -> number >= 0).toArray())
        .hasSize((1 << 16) - 1)
        .matches(numbers ->
            LongStream.of(numbers).allMatch(n -> n > draws - 30 * slots && n < draws + slots));
  }
}
