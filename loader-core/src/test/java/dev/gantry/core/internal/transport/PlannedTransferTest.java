// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// In which order the readers of several devices take what is to be read.
class PlannedTransferTest {
  private static List<Integer> numbers(int count) {
    return IntStream.range(0, count).boxed().toList();
  }

  @ParameterizedTest
  @CsvSource({"1, 7", "2, 8", "2, 7", "3, 8", "8, 3", "8, 0", "4, 1001"})
  void eachIsTakenOnce(int places, int count) {
    assertThat(PlannedTransfer.inTurnsFrom(places, numbers(count)))
        .containsExactlyInAnyOrderElementsOf(numbers(count));
  }

  @Test
  void oneDeviceReadsInOrder() {
    assertThat(PlannedTransfer.inTurnsFrom(1, numbers(5))).isEqualTo(numbers(5));
  }

  @Test
  void severalBeginAtPlacesEvenlyApart() {
    assertThat(PlannedTransfer.inTurnsFrom(2, numbers(7))).containsExactly(0, 4, 1, 5, 2, 6, 3);
    assertThat(PlannedTransfer.inTurnsFrom(3, numbers(9)))
        .containsExactly(0, 3, 6, 1, 4, 7, 2, 5, 8);
  }
}
