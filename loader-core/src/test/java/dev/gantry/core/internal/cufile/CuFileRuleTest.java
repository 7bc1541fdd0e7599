// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.cufile.CuFileRule.Question;
import dev.gantry.core.internal.cufile.CuFileRule.Way;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CuFileRuleTest {
  @ParameterizedTest
  @CsvSource({
    // bytes, file offset, memory offset, depth, ordered, by default, batches, streams, a threshold
    "4096, 0, 0, 1, false, SYNC, SYNC, SYNC, SYNC",
    "4096, 0, 0, 2, false, SYNC, BATCH, SYNC, SYNC",
    "4096, 0, 0, 8, false, SYNC, BATCH, SYNC, BATCH",
    "65535, 7, 1, 8, false, SYNC, BATCH, SYNC, BATCH",
    "65536, 0, 0, 8, false, SYNC, BATCH, SYNC, SYNC",
    "4096, 0, 0, 8, true, SYNC, SYNC, STREAM, SYNC",
    "1048576, 4096, 8192, 1, true, SYNC, SYNC, STREAM, STREAM",
    "1048576, 4096, 8193, 1, true, SYNC, SYNC, STREAM, SYNC",
    "1048577, 4096, 8192, 1, true, SYNC, SYNC, STREAM, SYNC",
    "1048576, 1, 8192, 1, true, SYNC, SYNC, STREAM, SYNC",
    "1048576, 0, 0, 64, false, SYNC, BATCH, SYNC, SYNC",
    "1048577, 0, 0, 64, false, SYNC, SYNC, SYNC, SYNC",
  })
  void chooses(
      long bytes,
      long fileOffset,
      long memoryOffset,
      int depth,
      boolean ordered,
      Way byDefault,
      Way batches,
      Way streams,
      Way byThreshold) {
    Question read = Question.of(bytes, fileOffset, memoryOffset, depth, ordered);
    assertThat(CuFileRule.DEFAULT.choose(read)).isEqualTo(byDefault);
    assertThat(CuFileRule.BATCHES.choose(read)).isEqualTo(batches);
    assertThat(CuFileRule.STREAMS.choose(read)).isEqualTo(streams);
    assertThat(new CuFileRule(65536, 8, 1 << 20, false).choose(read)).isEqualTo(byThreshold);
  }
}
