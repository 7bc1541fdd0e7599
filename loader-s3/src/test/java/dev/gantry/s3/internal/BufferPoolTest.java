// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BufferPoolTest {
  @ParameterizedTest
  @CsvSource({"1, 1, 1", "16, 1, 8", "64, 2, 32", "256, 8, 128", "1024, 8, 512", "100000, 8, 2000"})
  void thePoolIsHalfOfWhatTheJvmAllows(long limit, long part, long pool) {
    assertThat(BufferPool.of(limit << 20)).isEqualTo(new BufferPool(part << 20, pool << 20));
  }

  @Test
  void thisJvmHasRoomForAPart() {
    BufferPool pool = BufferPool.ofThisJvm();
    assertThat(pool.bytes()).isBetween(pool.partBytes(), Runtime.getRuntime().maxMemory());
  }
}
