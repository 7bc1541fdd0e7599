// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CuFileBatches;
import dev.gantry.core.internal.natives.CuFileBatches.Batch;
import dev.gantry.core.internal.natives.CuFileBatches.Entry;
import dev.gantry.core.internal.natives.CuFileBatches.Event;
import dev.gantry.core.internal.natives.CuFileHandle;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/// Reads and writes many scattered extents by cuFile's batch API. Several threads may [#run] at
/// once; they share a [BatchBudget]. Thread-safe.
public final class BatchTransfers {
  /// The most entries of one batch, so that several batches share the budget and a batch that is
  /// nearly done leaves room for others.
  public static final int MAX_ENTRIES = 32;

  /// How long one call waits for finished entries, before it is seen whether the caller wants to go on.
  private static final Duration LOOK = Duration.ofMillis(20);

  /// One extent to read or write.
  ///
  /// @param base the memory; if it is registered, exactly the region that was registered
  /// @param required how many bytes must be done: fewer than `length` where a read may meet the end of the file
  public record Request(
      CuFileHandle handle,
      boolean writes,
      MemorySegment base,
      long baseOffset,
      long fileOffset,
      long length,
      long required) {
    public Request {
      Objects.checkFromIndexSize(baseOffset, length, base.byteSize());
      Objects.checkIndex(required - 1, length);
    }
  }

  /// A request, of which `done` bytes are done already.
  private record Rest(int number, Request request, long done) {
    Entry entry() {
      return new Entry(
          request.handle(),
          request.writes(),
          request.base(),
          request.length() - done,
          request.fileOffset() + done,
          request.baseOffset() + done);
    }

    /// Returns what is left after `count` more bytes, or null if nothing is left.
    @Nullable Rest after(long count) {
      long now = done + count;
      if (now >= request.required()) {
        return null;
      }
      if (count > 0) {
        return new Rest(number, request, now);
      }
      long missing = request.required() - now;
      throw new TransferException(
          request.writes() ? "cuFile batch write" : "cuFile batch read",
          request.handle().file() + " offset " + (request.fileOffset() + now),
          request.writes() ? new Failure.NothingWritten(missing) : new Failure.EndOfFile(missing));
    }
  }

  private final CuFileBatches batches;
  private final BatchBudget budget;
  private final @Nullable CudaContext context;

  /// @param context the device whose memory is read into or written from; null for host memory
  public BatchTransfers(CuFileBatches batches, BatchBudget budget, @Nullable CudaContext context) {
    this.batches = batches;
    this.budget = budget;
    this.context = context;
  }

  /// Does all requests. When this returns or throws, libcufile no longer uses their memory.
  ///
  /// @param mayContinue whether to go on; [BatchBudget#wake] makes waiting threads call it again
  /// @param whenDone gets the index of each request when its bytes are there
  /// @throws TransferException the first failure, which names file and offset; of kind
  ///     [Failure.Cancelled] if the caller may not continue
  public void run(List<Request> requests, BooleanSupplier mayContinue, IntConsumer whenDone) {
    if (context == null) {
      runEntered(requests, mayContinue, whenDone);
      return;
    }
    try (var _ = context.enter()) {
      runEntered(requests, mayContinue, whenDone);
    }
  }

  private void runEntered(
      List<Request> requests, BooleanSupplier mayContinue, IntConsumer whenDone) {
    Deque<Rest> waiting = new ArrayDeque<>();
    for (int i = 0; i < requests.size(); i++) {
      waiting.add(new Rest(i, requests.get(i), 0));
    }
    if (waiting.isEmpty()) {
      return;
    }
    int entries = Math.min(Math.min(MAX_ENTRIES, budget.most()), waiting.size());
    try (Batch batch = batches.open(entries)) {
      while (!waiting.isEmpty()) {
        int taken = budget.take(Math.min(entries, waiting.size()), mayContinue);
        if (taken == 0) {
          throw cancelled();
        }
        try (Wave wave = new Wave(batch, taken)) {
          wave.run(waiting, mayContinue, whenDone);
        }
      }
    }
  }

  private static TransferException cancelled() {
    return new TransferException("cuFile batch", "entries not begun", new Failure.Cancelled());
  }

  /// One submission, from the moment that it has room in the budget.
  private final class Wave implements AutoCloseable {
    private final Batch batch;
    private final List<Rest> rests = new ArrayList<>();
    private int room;
    private int running;

    Wave(Batch batch, int room) {
      this.batch = batch;
      this.room = room;
    }

    void run(Deque<Rest> waiting, BooleanSupplier mayContinue, IntConsumer whenDone) {
      for (int i = 0; i < room; i++) {
        rests.add(waiting.remove());
      }
      List<Entry> entries = rests.stream().map(Rest::entry).toList();
      batch.submit(entries);
      running = entries.size();
      while (running > 0) {
        if (!mayContinue.getAsBoolean()) {
          throw cancelled();
        }
        // Waits for half of the running entries at a time: that takes few calls, and others get the
        // room soon.
        for (Event event : take(Math.ceilDiv(running, 2))) {
          Rest rest = rests.get(event.entry());
          Rest left = rest.after(event.count(entries.get(event.entry())));
          if (left == null) {
            whenDone.accept(rest.number());
          } else {
            waiting.addFirst(left);
          }
        }
      }
    }

    private List<Event> take(int least) {
      List<Event> events = batch.status(least, LOOK);
      running -= events.size();
      leave(events.size());
      return events;
    }

    private void leave(int entries) {
      room -= entries;
      budget.giveBack(entries);
    }

    /// Waits for entries that still run after a failure, so that nothing uses their memory. The batch is not
    /// cancelled: libcufile 1.15.1 was seen to hang then, and so few entries end soon.
    @Override
    public void close() {
      try {
        while (running > 0) {
          take(1);
        }
      } finally {
        leave(room);
      }
    }
  }
}
