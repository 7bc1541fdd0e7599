// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.PendingReads;
import dev.gantry.core.internal.threads.WorkerThreads;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Pinned buffers in which the bytes of remote files arrive on their way to a device. As soon as
/// they have arrived, they are copied on to the device. There are as many buffers as the requests
/// under way need, up to a bound in bytes, and fewer if the host has too little memory.
/// Thread-safe.
final class RemoteStaging implements AutoCloseable {
  private static final int FEWEST_BUFFERS = 2;

  /// How long a waiting thread sleeps before it asks the device again whether copies are done.
  private static final long POLL_MILLIS = 1;

  private final StagedTransport staged;
  private final List<Buffer> buffers = new ArrayList<>();

  /// Buffers from which copies are running, in the order in which their copies were queued.
  private final Deque<Buffer> copying = new ArrayDeque<>();

  private final Deque<Buffer> free = new ArrayDeque<>();

  /// The buffer that the next reads share; null before the first read.
  private @Nullable Buffer filling;

  /// The copies; null before the first buffer.
  private @Nullable TargetCopies copies;

  private int maxBuffers;

  /// The number of buffers that threads are allocating now.
  private int coming;

  /// Counts the changes that a waiting thread may wait for: a buffer was added, or a read has
  /// ended.
  private long changes;

  /// Whether a copy or an event was not queued, so that events do not tell which copies are done.
  private boolean refused;

  /// Whether the events showed that all copies are done.
  private boolean awaited;

  /// Made with this object, so that closing it needs no heap.
  private final List<Runnable> closing =
      List.of(this::awaitCopies, this::passOn, this::closeCopies, this::freeBuffers);

  RemoteStaging(StagedTransport staged) {
    this.staged = staged;
    this.maxBuffers = (int) Math.max(FEWEST_BUFFERS, PendingReads.MAX_BYTES / staged.bufferBytes());
  }

  private static final class Buffer {
    final int number;
    final PinnedSlab slab;
    CudaDriver.@Nullable Stream stream;
    long used;

    /// The number of reads whose bytes have not arrived yet.
    int arriving;

    Buffer(int number, PinnedSlab slab) {
      this.number = number;
      this.slab = slab;
    }
  }

  /// The part of a buffer that one read fills. Callers call [#arrived] or [#failed].
  final class Place {
    private final Buffer buffer;
    private final long at;
    private final Read read;
    private final Target target;
    private boolean left;

    private Place(Buffer buffer, long at, Read read, Target target) {
      this.buffer = buffer;
      this.at = at;
      this.read = read;
      this.target = target;
    }

    MemorySegment memory() {
      return buffer.slab.segment().asSlice(at, read.required());
    }

    /// Queues the copies into the read's target.
    void arrived() {
      RemoteStaging.this.arrived(this);
    }

    /// Gives this part of the buffer back, since its bytes will not arrive. Does nothing after
    /// [#arrived], even if [#arrived] failed.
    void failed() {
      leave(this);
    }
  }

  /// Takes the part of a buffer for a read; waits if all buffers are in use and no more may be
  /// added. Reads share a buffer if their copies are queued on the same stream.
  ///
  /// @throws TransferException if no buffer can be pinned, the device fails, or the caller is interrupted
  Place take(Read read, Target target) {
    while (true) {
      synchronized (this) {
        Buffer buffer = room(read, target.stream());
        if (buffer != null) {
          Place place = new Place(buffer, buffer.used, read, target);
          buffer.used += read.length();
          buffer.arriving++;
          return place;
        }
        if (buffers.size() + coming >= Math.max(1, maxBuffers)) {
          // If there is only one buffer, it is the next one, too.
          fill(null);
          awaitChange();
          continue;
        }
        coming++;
      }
      grow();
    }
  }

  /// The buffer that has enough free bytes for a read now; null if there is none.
  private @Nullable Buffer room(Read read, CudaDriver.@Nullable Stream stream) {
    Buffer buffer = filling;
    if (buffer != null
        && buffer.stream == stream
        && read.length() <= staged.bufferBytes() - buffer.used) {
      return buffer;
    }
    reclaim();
    Buffer next = free.poll();
    if (next == null) {
      return null;
    }
    next.stream = stream;
    next.used = 0;
    fill(next);
    return next;
  }

  private void reclaim() {
    while (!copying.isEmpty() && copies().isDone(copying.getFirst().number)) {
      free.add(copying.removeFirst());
    }
  }

  private void fill(@Nullable Buffer next) {
    Buffer last = filling;
    filling = next;
    if (last != null) {
      finish(last);
    }
  }

  /// Marks the end of a buffer's copies, if all of its reads have ended and the buffer gets no
  /// more reads.
  private void finish(Buffer buffer) {
    if (buffer.arriving > 0 || buffer.equals(filling)) {
      return;
    }
    boolean before = refused;
    refused = true;
    copies().turnTo(buffer.stream);
    copies().record(buffer.number);
    copies().passOn();
    copying.add(buffer);
    refused = before;
  }

  private void awaitChange() {
    long seen = changes;
    long asksAgain = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(POLL_MILLIS);
    try {
      while (changes == seen && (copying.isEmpty() || System.nanoTime() < asksAgain)) {
        wait(copying.isEmpty() ? 0 : POLL_MILLIS);
      }
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw WorkerThreads.interrupted("wait", "a staging buffer");
    }
  }

  /// Adds a buffer. The buffer is pinned outside the lock, since bytes of other reads arrive
  /// meanwhile.
  private void grow() {
    boolean added = false;
    TransferException failure = null;
    try {
      added =
          Cleanup.orUndo(
              () -> PinnedSlab.allocate(staged.context(), staged.bufferBytes()),
              this::add,
              Slab::release);
    } catch (TransferException e) {
      failure = e;
    } finally {
      noteGrowth(added);
    }
    if (failure != null && hasNone()) {
      throw failure;
    }
  }

  /// Whether there is no buffer, and no other thread is adding one.
  private synchronized boolean hasNone() {
    return buffers.isEmpty() && coming == 0;
  }

  private synchronized boolean add(PinnedSlab slab) {
    Buffer buffer = new Buffer(buffers.size(), slab);
    buffers.add(buffer);
    free.add(buffer);
    return true;
  }

  private synchronized void noteGrowth(boolean added) {
    coming--;
    if (!added) {
      maxBuffers = buffers.size() + coming;
    }
    changed();
  }

  private synchronized void changed() {
    changes++;
    notifyAll();
  }

  private TargetCopies copies() {
    TargetCopies opened = copies;
    if (opened == null) {
      opened = new TargetCopies(staged);
      copies = opened;
    }
    return opened;
  }

  private synchronized void arrived(Place place) {
    boolean before = refused;
    refused = true;
    try {
      copies().turnTo(place.buffer.stream);
      copies().copy(place.read, place.target, place.buffer.slab, place.at);
      refused = before;
    } finally {
      leave(place);
    }
  }

  private synchronized void leave(Place place) {
    if (place.left) {
      return;
    }
    place.left = true;
    place.buffer.arriving--;
    try {
      finish(place.buffer);
    } finally {
      changed();
    }
  }

  /// Waits until all copies are done, except copies on the stream of a [Target]. No read may be
  /// under way.
  synchronized void drain() {
    if (copies != null) {
      copies.drain();
    }
  }

  /// Waits for running copies, even after a failure, and frees the buffers. No read may be under
  /// way.
  @Override
  public synchronized void close() {
    Cleanup.runAll(closing);
  }

  private void awaitCopies() {
    if (copies == null) {
      filling = null;
    } else {
      fill(null);
      for (Buffer buffer : copying) {
        copies.await(buffer.number);
      }
    }
    awaited = !refused;
  }

  private void passOn() {
    if (copies != null) {
      copies.passOn();
    }
  }

  private void closeCopies() {
    if (copies != null) {
      copies.close();
    }
  }

  private void freeBuffers() {
    // If waiting for the copies failed, they may still read the buffers, which then stay allocated
    // for good.
    if (awaited || copies == null || copies.comesToRest()) {
      Cleanup.forEach(buffers, buffer -> buffer.slab.release());
    }
    buffers.clear();
    free.clear();
    copying.clear();
    copies = null;
  }
}
