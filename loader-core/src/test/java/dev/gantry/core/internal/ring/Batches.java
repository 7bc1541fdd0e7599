// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.Gathers;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.spi.Copy2D;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntFunction;

/// A source that checks its caller: one thread at a time asks it, no thread asks it after it was
/// closed, and it is closed once.
final class Batches<T> implements BatchPlanSource<T> {
  private final int count;
  private final IntFunction<BatchPlan<T>> recipe;
  private final ReentrantLock asking = new ReentrantLock();
  private final AtomicInteger asked = new AtomicInteger();
  private final AtomicInteger closed = new AtomicInteger();

  /// @param recipe makes the plan of a batch by its number
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
      return number < count ? Optional.of(withGathers(recipe.apply(number))) : Optional.empty();
    } finally {
      asking.unlock();
    }
  }

  /// Adds gathers that do the same as the plan's reads and copies, for transports that gather.
  private static <T> BatchPlan<T> withGathers(BatchPlan<T> plan) {
    Gathers.Builder gathers = new Gathers.Builder(plan.reads().size());
    if (plan.reads().stream().anyMatch(read -> read.fileOffset() < 0)) {
      return plan;
    }
    for (Read read : plan.reads()) {
      add(gathers, read, read.slabOffset(), read.required(), read.slabOffset());
    }
    for (Copy2D copy : plan.copies()) {
      for (long row = 0; row < copy.rows(); row++) {
        long from = copy.source() + row * copy.sourcePitch();
        long to = copy.target() + row * copy.targetPitch();
        plan.reads().stream()
            .filter(read ->
                from >= read.slabOffset()
                    && from + copy.width() <= read.slabOffset() + read.length())
            .findFirst()
            .ifPresent(read -> add(gathers, read, from, copy.width(), to));
      }
    }
    return new BatchPlan<>(
        plan.reads(),
        plan.hostWrites(),
        plan.copies(),
        gathers.build(),
        plan.normalized(),
        plan.label(),
        null);
  }

  private static void add(Gathers.Builder gathers, Read read, long from, long bytes, long to) {
    gathers.add(read.file(), read.fileOffset() + from - read.slabOffset(), bytes, to);
  }

  /// Returns how often the source was asked for a batch.
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
