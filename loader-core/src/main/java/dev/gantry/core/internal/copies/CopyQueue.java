// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.copies;

import dev.gantry.core.internal.events.CopyEvent;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.IdleStreams;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.spi.Copy2D;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Queues copies between a device and pinned buffers, on its own stream or on a stream that the
/// caller gives. For each buffer it has an event, which tells when the copies from or into the
/// buffer are done. Only one thread may use an instance at a time.
public final class CopyQueue implements AutoCloseable {

  private final CudaContext context;
  private final boolean blockingWaits;
  private final CudaDriver.Stream own;
  private CudaDriver.Stream stream;
  private final List<Mark> marks = new ArrayList<>();

  /// The small copies on the queue's own stream; null if the queue does not collect them.
  private final @Nullable SmallCopies small;

  /// Made with the queue, so that closing it needs no heap.
  private final Runnable awaitOwn = this::awaitOwn;

  private final Runnable destroy = this::destroy;

  /// The flight recorder's event of the copies that were queued since the last [#record].
  private CopyEvent queued = new CopyEvent();

  /// How many copies were queued so far.
  private long count;

  /// The end of the copies of one buffer.
  private static final class Mark {
    final CudaDriver.Event event;

    /// The value of [#count] at the buffer's last [#record]. If it is still the same, no copies
    /// were queued since, and there is nothing to mark.
    long recorded;

    /// Whether [#record] marked copies that are not known to be done yet.
    boolean running;

    CopyEvent copies = new CopyEvent();

    Mark(IdleStreams idle, boolean sleeps) {
      event = sleeps ? idle.blockingSyncEvent() : idle.event();
    }
  }

  /// Opens a queue for short waits: a thread that waits spins, which keeps a processor busy.
  public CopyQueue(CudaContext context) {
    this(context, false, null);
  }

  /// @param blockingWaits whether threads sleep, instead of spinning, while they wait for a buffer,
  ///     because its copies may take long to begin
  /// @param kernels the kernels for small copies; null if each copy is queued on its own
  public CopyQueue(CudaContext context, boolean blockingWaits, @Nullable CopyKernels kernels) {
    this.context = context;
    this.blockingWaits = blockingWaits;
    small = kernels == null ? null : new SmallCopies(context, kernels);
    own = context.streams().stream();
    stream = own;
  }

  private void giveBack() {
    for (Mark mark : marks) {
      context.streams().giveBack(mark.event);
    }
    context.streams().giveBack(own);
  }

  private Mark mark(int buffer) {
    while (marks.size() <= buffer) {
      marks.add(new Mark(context.streams(), blockingWaits));
    }
    return marks.get(buffer);
  }

  public CudaContext context() {
    return context;
  }

  /// Queues copies on `chosen` from now on, or on this queue's own stream if that is null.
  public void turnTo(CudaDriver.@Nullable Stream chosen) {
    stream = chosen == null ? own : chosen;
  }

  /// Waits until the copies that [#record] marked for a buffer are done, if there are any.
  public void await(int buffer) {
    if (buffer >= marks.size() || !marks.get(buffer).running) {
      return;
    }
    Mark mark = marks.get(buffer);
    TimedEvent wait = TimedEvent.begun(EventKind.WAIT);
    if (blockingWaits) {
      context.await(mark.event);
    } else {
      try (var _ = context.enter()) {
        context.driver().synchronize(mark.event);
      }
    }
    wait.done("copy");
    end(mark);
  }

  /// Whether the copies that [#record] marked for a buffer are done; does not wait for them.
  public boolean isDone(int buffer) {
    if (buffer >= marks.size() || !marks.get(buffer).running) {
      return true;
    }
    Mark mark = marks.get(buffer);
    try (var _ = context.enter()) {
      if (!context.driver().isDone(mark.event)) {
        return false;
      }
    }
    end(mark);
    return true;
  }

  private void end(Mark mark) {
    mark.running = false;
    mark.copies.done(context.device());
    mark.copies = new CopyEvent();
  }

  private void endAll() {
    for (Mark mark : marks) {
      mark.copies.done(context.device());
      mark.copies = new CopyEvent();
    }
    queued.done(context.device());
    queued = new CopyEvent();
  }

  /// Queues a copy from host memory, which must not change until the copy is done.
  public void copyToDevice(long device, long host, long bytes) {
    add(CopyEvent.Direction.TO_DEVICE, bytes);
    try (var _ = context.enter()) {
      context.driver().copyToDevice(device, host, bytes, stream);
    }
  }

  /// Queues a copy from a pinned buffer, which must not change until the copy is done. On the
  /// queue's own stream, a small copy may wait until more copies are queued, or until the next
  /// [#record] or [#drain].
  ///
  /// @param at offset of the bytes in the buffer
  public void copyToDevice(long device, PinnedSlab buffer, long at, long bytes) {
    long host = buffer.address() + at;
    if (small != null && stream == own && small.take(device, host, bytes, own)) {
      add(CopyEvent.Direction.TO_DEVICE, bytes);
    } else {
      copyToDevice(device, host, bytes);
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
  public void copyToDevice(Copy2D rows) {
    try (var _ = context.enter()) {
      add(CopyEvent.Direction.TO_DEVICE, rows.bytes());
      context.driver().copyToDevice(rows, stream);
    }
  }

  /// Queues a copy to another device.
  public void copyToPeer(CudaContext peer, long target, long source, long bytes) {
    add(CopyEvent.Direction.TO_ANOTHER_DEVICE, bytes);
    context.copyToPeer(peer, target, source, bytes, stream);
  }

  private void queueSmall() {
    if (small != null) {
      small.queue(own);
    }
  }

  /// Counts a copy. Small copies are queued before it, because it may read what they write.
  private void add(CopyEvent.Direction where, long bytes) {
    if (where != CopyEvent.Direction.TO_DEVICE) {
      queueSmall();
    }
    count++;
    queued.add(where, bytes);
  }

  /// Records `buffer`'s event after all copies so far, which are the copies from or into this
  /// buffer. Does nothing if no copies were queued since the buffer's last mark.
  public void record(int buffer) {
    if (count == (buffer < marks.size() ? marks.get(buffer).recorded : 0)) {
      return;
    }
    queueSmall();
    Mark mark = mark(buffer);
    try (var _ = context.enter()) {
      context.driver().record(mark.event, stream);
    }
    mark.recorded = count;
    mark.running = true;
    mark.copies.done(context.device());
    mark.copies = queued;
    queued = new CopyEvent();
  }

  /// Waits for all copies on the queue's own stream.
  public void drain() {
    queueSmall();
    awaitOwn();
    if (stream == own) {
      endAll();
    }
  }

  /// Waits for all copies on the queue's own stream, and gives back the stream and the events.
  /// Copies on streams that the caller gave must be done before.
  @Override
  public void close() {
    try {
      queueSmall();
    } finally {
      Cleanup.orUndo(awaitOwn, destroy);
      giveBack();
      endAll();
    }
  }

  private void awaitOwn() {
    try (var _ = context.enter()) {
      context.driver().synchronize(own);
    }
  }

  private void destroy() {
    // The caller frees the memory of the copies next.
    boolean _ = context.comesToRest();
    try {
      context.streams().destroy(own, marks.stream().map(mark -> mark.event).toList());
    } finally {
      endAll();
    }
  }

  /// Closes all queues, even if closing one of them fails.
  public static void closeAll(Collection<CopyQueue> queues) {
    Cleanup.forEach(queues, CopyQueue::close);
  }
}
