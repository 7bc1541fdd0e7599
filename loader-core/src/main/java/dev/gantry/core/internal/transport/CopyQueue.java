// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.internal.events.CopyEvent;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.IdleStreams;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.spi.Copy2D;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Queues copies between a device and two pinned buffers, on its own stream or a given one. An event for each buffer
/// tells when the copies from or into it are done. For one thread.
public final class CopyQueue implements AutoCloseable {
  private static final int BUFFERS = 2;

  private final CudaContext context;
  private final boolean sleepers;
  private final CudaDriver.Stream own;
  private CudaDriver.Stream stream;
  private final List<CudaDriver.Event> copied = new ArrayList<>(BUFFERS);

  /// The event of the copies that were queued since the last [#record].
  private CopyEvent queued = new CopyEvent();

  /// Whether any copies were queued since the last [#record].
  private boolean unmarked;

  /// Whether [#record] marked copies of a buffer that nothing has awaited yet, by buffer. If not, the queue need not
  /// ask the driver.
  private final boolean[] running = new boolean[BUFFERS];

  /// The event of the copies of each buffer that [#record] marked and nothing has awaited yet.
  private final CopyEvent[] marked = {new CopyEvent(), new CopyEvent()};

  /// Opens a queue whose waits are short: a thread that waits keeps a processor busy.
  public CopyQueue(CudaContext context) {
    this(context, false);
  }

  /// @param sleepers whether threads sleep while they wait for a buffer, because its copies may take long to begin
  CopyQueue(CudaContext context, boolean sleepers) {
    this.context = context;
    this.sleepers = sleepers;
    IdleStreams idle = context.streams();
    own = idle.stream();
    stream = own;
    Cleanup.orUndo(
        () -> {
          while (copied.size() < BUFFERS) {
            copied.add(sleepers ? idle.blockingSyncEvent() : idle.event());
          }
        },
        this::giveBack);
  }

  private void giveBack() {
    copied.forEach(context.streams()::giveBack);
    context.streams().giveBack(own);
  }

  CudaContext context() {
    return context;
  }

  /// Queues copies on `chosen` from now on, or on this queue's own stream if that is null.
  void turnTo(CudaDriver.@Nullable Stream chosen) {
    stream = chosen == null ? own : chosen;
  }

  /// Waits until the copies that [#record] marked for a buffer are done, if there are any.
  public void await(int buffer) {
    if (!running[buffer]) {
      return;
    }
    TimedEvent wait = TimedEvent.begun(EventKind.WAIT);
    if (sleepers) {
      context.await(copied.get(buffer));
    } else {
      try (var _ = context.enter()) {
        context.driver().synchronize(copied.get(buffer));
      }
    }
    wait.done("copy");
    running[buffer] = false;
    marked[buffer].done(context.device());
    marked[buffer] = new CopyEvent();
  }

  private void endAll() {
    for (int buffer = 0; buffer < BUFFERS; buffer++) {
      marked[buffer].done(context.device());
      marked[buffer] = new CopyEvent();
    }
    queued.done(context.device());
    queued = new CopyEvent();
  }

  /// Queues a copy from pinned memory, which must not change until the copy is done.
  public void copyToDevice(long device, long host, long bytes) {
    try (var _ = context.enter()) {
      add(CopyEvent.Direction.TO_DEVICE, bytes);
      context.driver().copyToDevice(device, host, bytes, stream);
    }
  }

  /// Queues a copy to pinned memory.
  public void copyToHost(long host, long device, long bytes) {
    try (var _ = context.enter()) {
      add(CopyEvent.Direction.TO_HOST, bytes);
      context.driver().copyToHost(host, device, bytes, stream);
    }
  }

  /// Queues a copy within the device.
  public void copyOnDevice(long target, long source, long bytes) {
    try (var _ = context.enter()) {
      add(CopyEvent.Direction.ON_DEVICE, bytes);
      context.driver().copyOnDevice(target, source, bytes, stream);
    }
  }

  /// Queues a copy of rows from pinned memory, which must not change until the copy is done.
  void copyToDevice(Copy2D rows) {
    try (var _ = context.enter()) {
      add(CopyEvent.Direction.TO_DEVICE, rows.bytes());
      context.driver().copyToDevice(rows, stream);
    }
  }

  /// Queues a copy to another device.
  void copyToPeer(CudaContext peer, long target, long source, long bytes) {
    add(CopyEvent.Direction.TO_ANOTHER_DEVICE, bytes);
    context.copyToPeer(peer, target, source, bytes, stream);
  }

  private void add(CopyEvent.Direction where, long bytes) {
    unmarked = true;
    queued.add(where, bytes);
  }

  /// Marks all copies since the last call as those of `buffer`.
  public void record(int buffer) {
    if (!unmarked) {
      return;
    }
    try (var _ = context.enter()) {
      context.driver().record(copied.get(buffer), stream);
    }
    unmarked = false;
    running[buffer] = true;
    marked[buffer].done(context.device());
    marked[buffer] = queued;
    queued = new CopyEvent();
  }

  /// Waits for all copies on the queue's own stream.
  public void drain() {
    try (var _ = context.enter()) {
      context.driver().synchronize(own);
    }
    if (stream == own) {
      endAll();
    }
  }

  /// Waits for all copies on the queue's own stream, and gives back the stream and the events. Copies on given streams
  /// must be done before.
  @Override
  public void close() {
    Cleanup.orUndo(
        () -> {
          try (var _ = context.enter()) {
            context.driver().synchronize(own);
          }
        },
        () -> Cleanup.runAll(List.of(() -> context.streams().destroy(own, copied), this::endAll)));
    giveBack();
    endAll();
  }

  /// Closes all queues, even if closing one of them fails.
  public static void closeAll(Collection<CopyQueue> queues) {
    Cleanup.runAll(queues.stream().<Runnable>map(queue -> queue::close).toList());
  }
}
