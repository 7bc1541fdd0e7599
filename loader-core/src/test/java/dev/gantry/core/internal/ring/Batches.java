// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntFunction;

/// A source that sees to it that it is treated well: asked by one thread at a time, not after it
/// was closed, and closed once.
final class Batches<T> implements BatchPlanSource<T> {
  private final int count;
  private final IntFunction<BatchPlan<T>> recipe;
  private final ReentrantLock asking = new ReentrantLock();
  private final AtomicInteger asked = new AtomicInteger();
  private final AtomicInteger closed = new AtomicInteger();

  /// @param recipe of the batch of this number
  Batches(int count, IntFunction<BatchPlan<T>> recipe) {
    this.count = count;
    this.recipe = recipe;
  }

  @Override
  public Optional<BatchPlan<T>> next() {
    assertThat(asking.tryLock()).as("asked by one thread at a time").isTrue();
    try {
      assertThat(closed).hasValue(0);
      int number = asked.getAndIncrement();
      return number < count ? Optional.of(recipe.apply(number)) : Optional.empty();
    } finally {
      asking.unlock();
    }
  }

  /// How often it was asked.
  int asked() {
    return asked.get();
  }

  int closed() {
    return closed.get();
  }

  @Override
  public void close() {
    assertThat(asking.isLocked()).isFalse();
    closed.incrementAndGet();
  }
}
