// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.NoLeaks;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(NoLeaks.class)
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PoolTest {
  private static final long FOR_EVER = Long.MAX_VALUE;

  private final List<String> released = Collections.synchronizedList(new ArrayList<>());
  private volatile long most = 1000;
  private Pool<String> idle = idle(FOR_EVER);

  private Pool<String> idle(long keptNanos) {
    return new Pool<>(LiveResources.Kind.HOST_BYTES, keptNanos, () -> most, released::add);
  }

  @AfterEach
  void free() {
    idle.free();
  }

  @Test
  void memoryOfAboutTheSizeIsTakenAgain() {
    idle.keep("a", 100);
    assertThat(idle.take(101)).as("too small").isNull();
    assertThat(idle.take(79)).as("too large").isNull();
    assertThat(idle.take(80)).isEqualTo("a");
    assertThat(idle.take(80)).isNull();
    assertThat(released).isEmpty();
  }

  @Test
  void theSmallestThatFitsIsTaken() {
    idle.keep("a", 110);
    idle.keep("b", 100);
    idle.keep("c", 120);
    assertThat(idle.take(100)).isEqualTo("b");
    assertThat(idle.take(100)).isEqualTo("a");
    assertThat(idle.take(100)).isEqualTo("c");
  }

  @Test
  void whatWasIdleLongestMakesRoom() {
    idle.keep("a", 300);
    idle.keep("b", 400);
    idle.keep("c", 500);
    assertThat(released).containsExactly("a");
    idle.keep("d", 1000);
    assertThat(released).containsExactly("a", "b", "c");
  }

  @Test
  void moreThanThereMayBeIsReleasedAtOnce() {
    idle.keep("a", 300);
    idle.keep("b", 1001);
    assertThat(released).containsExactly("b");
    assertThat(idle.size()).isEqualTo(300);
  }

  @Test
  void idleBytesCount() {
    long before = LiveResources.snapshot().hostBytes();
    idle.keep("a", 600);
    idle.keep("b", 300);
    assertThat(LiveResources.snapshot().hostBytes() - before).isEqualTo(900);
    assertThat(idle.take(300)).isEqualTo("b");
    assertThat(LiveResources.snapshot().hostBytes() - before).isEqualTo(600);
    idle.free();
    assertThat(released).containsExactly("a");
    assertThat(LiveResources.snapshot().hostBytes() - before).isZero();
  }

  @Test
  void whatIsNotUsedIsReleasedAfterItsTime() throws InterruptedException {
    CountDownLatch both = new CountDownLatch(2);
    idle = new Pool<>(LiveResources.Kind.HOST_BYTES, 0, () -> most, _ -> both.countDown());
    idle.keep("a", 100);
    idle.keep("b", 100);
    both.await();
    assertThat(idle.size()).isZero();
  }

  @Test
  void memoryThatOthersNeedIsReleasedBeforeItsTime() throws InterruptedException {
    CountDownLatch gone = new CountDownLatch(1);
    idle = new Pool<>(LiveResources.Kind.HOST_BYTES, FOR_EVER, () -> most, _ -> gone.countDown());
    idle.keep("a", 100);
    most = 0;
    gone.await();
    assertThat(idle.size()).isZero();
  }
}
