// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.internal.natives.CudaDriver;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Keeps a device's idle streams and events for the next copies. No bound is needed: there are
/// never more idle streams than were once in use at the same time. Thread-safe.
public final class IdleStreams {
  private static final long KEPT_SECONDS = 10;

  private final CudaContext context;
  private final Pool<CudaDriver.Stream> streams;
  private final Pool<CudaDriver.Event> events;
  private final Pool<CudaDriver.Event> blockingSyncEvents;

  /// Made early, since [#destroy] must not fail for want of heap.
  private final Consumer<CudaDriver.Event> destroyEvent;

  IdleStreams(CudaContext context) {
    this.context = context;
    destroyEvent = event -> context.driver().destroy(event);
    streams = pool(stream -> context.driver().destroy(stream));
    events = pool(destroyEvent);
    blockingSyncEvents = pool(destroyEvent);
  }

  private <T> Pool<T> pool(Consumer<T> destroy) {
    return new Pool<>(
        KEPT_SECONDS,
        () -> Long.MAX_VALUE,
        one -> {
          try (var _ = context.enter()) {
            destroy.accept(one);
          }
        });
  }

  /// Takes a stream on which nothing is queued.
  public CudaDriver.Stream stream() {
    return take(streams, context.driver()::createStream);
  }

  /// Takes an event for short waits; see [CudaDriver#createEvent]. It may have been recorded before.
  public CudaDriver.Event event() {
    return take(events, context.driver()::createEvent);
  }

  /// Takes an event for long waits; see [CudaDriver#createBlockingSyncEvent]. It may have been recorded before.
  public CudaDriver.Event blockingSyncEvent() {
    return take(blockingSyncEvents, context.driver()::createBlockingSyncEvent);
  }

  private <T> T take(Pool<T> pool, Supplier<T> create) {
    @Nullable T idle = pool.take(1);
    if (idle != null) {
      return idle;
    }
    try (var _ = context.enter()) {
      return create.get();
    }
  }

  /// @param stream a stream whose work is all done
  public void giveBack(CudaDriver.Stream stream) {
    streams.keep(stream, 1);
  }

  /// @param event an event for which no thread waits; all work queued before the event must be
  ///     done
  public void giveBack(CudaDriver.Event event) {
    (event.isBlockingSync() ? blockingSyncEvents : events).keep(event, 1);
  }

  /// Destroys a stream and events instead of giving them back. Callers use this after a wait for
  /// the device failed: the device may still use them, so they must not be reused.
  public void destroy(CudaDriver.Stream stream, List<CudaDriver.Event> events) {
    try (var _ = context.enter()) {
      try {
        Cleanup.forEach(events, destroyEvent);
      } finally {
        context.driver().destroy(stream);
      }
    }
  }

  /// Destroys the streams and events that are kept.
  void free() {
    Cleanup.runAll(List.of(streams::free, events::free, blockingSyncEvents::free));
  }
}
