// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.threads;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ReaderGrowthTest {
  private static void turn(ReaderGrowth growth, int times, boolean waits) {
    for (int i = 0; i < times; i++) {
      growth.turned(() -> waits);
    }
  }

  @Test
  void readersJoinAsLongAsNoneWaitsForTheDevice() {
    ReaderGrowth growth = new ReaderGrowth(8, 16);
    turn(growth, 23, false);
    assertThat(growth.joined()).isEqualTo(8);
    turn(growth, 1, false);
    assertThat(growth.joined()).isEqualTo(10);
    turn(growth, 30, false);
    assertThat(growth.joined()).isEqualTo(12);
    turn(growth, 1_000, false);
    assertThat(growth.joined()).isEqualTo(16);
  }

  @Test
  void noneJoinsWhereReadersWaitForTheDevice() {
    ReaderGrowth growth = new ReaderGrowth(8, 16);
    for (int i = 0; i < 100; i++) {
      turn(growth, 2, false);
      turn(growth, 1, true);
    }
    assertThat(growth.joined()).isEqualTo(8);
  }

  @Test
  void aReaderWaitsUntilItIsToJoin() {
    ReaderGrowth growth = new ReaderGrowth(2, 4);
    assertThat(growth.join(1)).isTrue();
    CompletableFuture<Boolean> third = CompletableFuture.supplyAsync(() -> growth.join(2));
    turn(growth, 5, false);
    assertThat(third).isNotDone();
    turn(growth, 1, false);
    assertThat(third.join()).isTrue();
  }

  @Test
  void aReaderThatHasNotJoinedEndsWithTheLoad() {
    ReaderGrowth growth = new ReaderGrowth(2, 4);
    CompletableFuture<Boolean> third = CompletableFuture.supplyAsync(() -> growth.join(2));
    growth.end();
    assertThat(third.join()).isFalse();
    assertThat(growth.join(0)).isTrue();
  }

  @Test
  void aFixedNumberOfReadersIsNotAskedWhetherTheyWait() {
    ReaderGrowth.NONE.turned(() -> {
      throw new AssertionError("asked");
    });
    assertThat(new ReaderGrowth(32, 16).joined()).isEqualTo(16);
  }
}
