// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class OpenMpAdviceTest {
  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  void isGivenWhereCoresAreFew(int cores) {
    assertThat(OpenMpAdvice.of(cores, _ -> false))
        .hasValueSatisfying(
            line -> assertThat(line).contains("on " + cores + " cores", "OMP_WAIT_POLICY=passive"));
  }

  /// One core has one thread, which waits for none.
  @ParameterizedTest
  @ValueSource(ints = {1, 5, 64})
  void isNotGivenWhereNoneOrLittleIsLost(int cores) {
    assertThat(OpenMpAdvice.of(cores, _ -> false)).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "OMP_WAIT_POLICY",
        "OMP_NUM_THREADS",
        "GOMP_SPINCOUNT",
        "ai.djl.pytorch.num_threads"
      })
  void isNotGivenToOneWhoHasChosen(String setting) {
    assertThat(OpenMpAdvice.of(2, setting::equals)).isEmpty();
  }

  /// Intel's OpenMP has it, and libtorch for Linux uses GNU's.
  @Test
  void isGivenThoughAnotherOpenMpIsTold() {
    assertThat(OpenMpAdvice.of(2, "KMP_BLOCKTIME"::equals)).isPresent();
  }
}
