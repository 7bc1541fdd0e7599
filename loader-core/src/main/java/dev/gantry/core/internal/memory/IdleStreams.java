// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.internal.natives.CudaDriver;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/// A device's streams and events that nothing uses now, kept for the next copies.
///
/// As many as were in use at once; all of them go when none was given back for a while. Thread-safe.
public final class IdleStreams {
  private static final long KEPT_NANOS = 10_000_000_000L;

  private final CudaContext context;
  private final BooleanSupplier look = this::look;
  private final Deque<CudaDriver.Stream> streams = new ArrayDeque<>();
  private final Deque<CudaDriver.Event> events = new ArrayDeque<>();
  private final Deque<CudaDriver.Event> sleepersEvents = new ArrayDeque<>();
  private long givenBackNanos;

  IdleStreams(CudaContext context) {
    this.context = context;
  }

  /// A stream on which nothing is queued.
  public CudaDriver.Stream stream() {
    return take(streams, context.driver()::createStream);
  }

  /// An event for short waits; see [CudaDriver#createEvent]. It may have been recorded before.
  public CudaDriver.Event event() {
    return take(events, context.driver()::createEvent);
  }

  /// An event for long waits; see [CudaDriver#createSleepersEvent]. It may have been recorded before.
  public CudaDriver.Event sleepersEvent() {
    return take(sleepersEvents, context.driver()::createSleepersEvent);
  }

  private <T> T take(Deque<T> idle, Supplier<T> create) {
    synchronized (this) {
      if (!idle.isEmpty()) {
        return idle.pop();
      }
    }
    try (var _ = context.enter()) {
      return create.get();
    }
  }

  /// @param stream all of whose work is done
  public void giveBack(CudaDriver.Stream stream) {
    keep(streams, stream);
  }

  /// @param event for which no thread waits, and before which all work is done
  public void giveBack(CudaDriver.Event event) {
    keep(event.isForSleepers() ? sleepersEvents : events, event);
  }

  private <T> void keep(Deque<T> idle, T one) {
    synchronized (this) {
      idle.push(one);
      givenBackNanos = System.nanoTime();
    }
    IdleWatch.watch(look);
  }

  private boolean look() {
    synchronized (this) {
      if (System.nanoTime() - givenBackNanos <= KEPT_NANOS) {
        return true;
      }
    }
    free();
    return false;
  }

  /// Destroys all.
  void free() {
    List<Runnable> actions = new ArrayList<>();
    synchronized (this) {
      streams.forEach(stream -> actions.add(() -> context.driver().destroy(stream)));
      events.forEach(event -> actions.add(() -> context.driver().destroy(event)));
      sleepersEvents.forEach(event -> actions.add(() -> context.driver().destroy(event)));
      streams.clear();
      events.clear();
      sleepersEvents.clear();
    }
    try (var _ = context.enter()) {
      Cleanup.runAll(actions);
    }
  }
}
