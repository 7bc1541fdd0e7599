// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.GantryException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.spi.ReadRequest;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Reads of remote files. Many are under way at once, and the threads that start reads do not wait
/// for their bytes. Thread-safe.
///
/// [LinkWindow] bounds the number of reads under way; their total bytes and the total number of
/// their retries are bounded, too. The slowest few reads are requested a second time (hedged).
public final class PendingReads implements AutoCloseable {
  /// The most bytes that are under way at once, unless one read has more: 10 GB/s for a tenth of a second.
  public static final long MAX_BYTES = 1L << 30;

  /// The most retries beyond the number of reads that succeeded. Thus a server that fails now and
  /// then is asked again, and a server that is down is not asked forever.
  static final int MAX_RETRIES = 256;

  /// At once, one read and one in this many of the reads under way may be hedged.
  private static final int HEDGED_PART = 20;

  /// How often to look for slow reads.
  private static final long LOOK_MILLIS = 100;

  private final Set<Pending> underWay = new HashSet<>();
  private final BooleanSupplier none = underWay::isEmpty;

  /// Made with this object: a wait for the reads must not fail for want of heap, since the caller
  /// then frees the memory that they fill.
  private final Cleanup.Wait untilNone = this::awaitNone;

  private long bytesUnderWay;
  private int retries = MAX_RETRIES;

  /// The number of reads under way that were requested a second time.
  private int hedged;

  /// Whether a call of [#look] is scheduled.
  private boolean looks;

  private boolean cancelled;

  /// Begins a read of the first `required` bytes of `target`, from `offset` in the file. First
  /// waits until the link needs one more request. Either `whenDone` or `whenFailed` is run once,
  /// on any thread, and the read counts as under way until that action returns.
  ///
  /// @param file a remote file
  /// @param whenDone run when the bytes are in `target`; if it throws, the read has failed
  /// @param whenFailed run when the read has failed; must not throw
  public void start(
      SourceFile file,
      MemorySegment target,
      long offset,
      long required,
      Runnable whenDone,
      Consumer<Throwable> whenFailed) {
    Pending read = new Pending(file, target.asSlice(0, required), offset, whenDone, whenFailed);
    try {
      BooleanSupplier entered = () -> enters(read);
      await(entered, () -> awaitOnce(entered));
      if (isCancelled()) {
        throw new TransferException("read", file.file().toString(), new Failure.Cancelled());
      }
      read.begin();
    } catch (RuntimeException | Error e) {
      read.failed(e);
    }
  }

  private boolean enters(Pending read) {
    long bytes = read.target().byteSize();
    if (!hasRoom(read.file, bytes)) {
      return false;
    }
    underWay.add(read);
    bytesUnderWay += bytes;
    if (!looks) {
      lookLater();
      looks = true;
    }
    return true;
  }

  private void lookLater() {
    CompletableFuture.delayedExecutor(LOOK_MILLIS, TimeUnit.MILLISECONDS).execute(this::look);
  }

  /// Hedges reads that take much longer than is usual.
  private void look() {
    List<Runnable> slow = new ArrayList<>();
    synchronized (this) {
      looks = false;
      if (!underWay.isEmpty()) {
        lookLater();
        looks = true;
      }
      long now = System.nanoTime();
      underWay.stream()
          .filter(read -> read.isSlow(now))
          .sorted(Comparator.comparingLong(read -> read.begunNanos - now))
          .limit(Math.max(0, 1 + underWay.size() / HEDGED_PART - hedged))
          .forEach(read -> slow.add(read.takeHedge()));
      hedged += slow.size();
    }
    slow.forEach(Runnable::run);
  }

  private synchronized boolean mayRetry() {
    if (retries == 0) {
      return false;
    }
    retries--;
    return true;
  }

  private synchronized void noteSuccess() {
    retries = Math.min(MAX_RETRIES, retries + 1);
  }

  private boolean hasRoom(SourceFile file, long bytes) {
    return underWay.isEmpty()
        || (underWay.size() < file.requestsAtOnce() && bytes <= MAX_BYTES - bytesUnderWay);
  }

  /// Waits until all reads have ended, even if they failed.
  public void drain() {
    await(none, untilNone);
  }

  /// Cancels the reads that are under way, and returns after the last of them has stopped writing
  /// to its target.
  @Override
  public void close() {
    try {
      cancel();
    } finally {
      drain();
    }
  }

  /// Waits for a condition, which is evaluated under the lock. An interruption of the caller
  /// cancels the reads, but the wait goes on, because the reads write to their targets until they
  /// have ended.
  ///
  /// @param wait waits for the condition
  private void await(BooleanSupplier condition, Cleanup.Wait wait) {
    boolean interrupted = false;
    while (!awaited(condition, wait)) {
      interrupted = true;
      cancel();
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private boolean awaited(BooleanSupplier condition, Cleanup.Wait wait) {
    try {
      return holds(condition) || WorkerThreads.await(wait);
    } catch (InterruptedException _) {
      return false;
    }
  }

  private synchronized boolean holds(BooleanSupplier condition) {
    return condition.getAsBoolean();
  }

  private boolean awaitNone() throws InterruptedException {
    return awaitOnce(none);
  }

  private synchronized boolean awaitOnce(BooleanSupplier condition) throws InterruptedException {
    while (!condition.getAsBoolean()) {
      wait();
    }
    return true;
  }

  private synchronized boolean isCancelled() {
    return cancelled;
  }

  /// Cancels the reads that are under way, and those that begin later. The lock is not held while
  /// the reads are cancelled, since the store's threads may wait for the lock.
  public void cancel() {
    List<Pending> ending;
    synchronized (this) {
      cancelled = true;
      ending = List.copyOf(underWay);
    }
    ending.forEach(read -> read.cancellation().cancel());
  }

  private final class Pending extends ReadRequest {
    private final SourceFile file;
    private final Runnable whenDone;
    private final Consumer<Throwable> whenFailed;
    private volatile long begunNanos;
    private volatile Runnable forget = () -> {};
    private volatile @Nullable Runnable hedge;
    private boolean isHedged;

    Pending(
        SourceFile file,
        MemorySegment target,
        long offset,
        Runnable whenDone,
        Consumer<Throwable> whenFailed) {
      super(target, offset, new Cancellation());
      this.file = file;
      this.whenDone = whenDone;
      this.whenFailed = whenFailed;
    }

    void begin() {
      begunNanos = System.nanoTime();
      forget = file.whenEnded(cancellation()::cancel);
      file.stored().read(this);
    }

    @Override
    public boolean mayRetry() {
      return PendingReads.this.mayRetry();
    }

    @Override
    public void whenSlow(Runnable action) {
      Runnable before = hedge;
      hedge =
          before == null
              ? action
              : () -> {
                before.run();
                action.run();
              };
    }

    boolean isSlow(long now) {
      return hedge != null && now - begunNanos > file.slowNanos(target().byteSize());
    }

    Runnable takeHedge() {
      isHedged = true;
      Runnable taken = Objects.requireNonNull(hedge);
      hedge = null;
      return taken;
    }

    @Override
    public void completed() {
      try {
        noteSuccess();
        file.noteEnd(target().byteSize(), System.nanoTime() - begunNanos, isFull());
        whenDone.run();
      } catch (RuntimeException | Error e) {
        failed(e);
        return;
      }
      end();
    }

    private boolean isFull() {
      synchronized (PendingReads.this) {
        return !hasRoom(file, target().byteSize());
      }
    }

    @Override
    public void failed(Throwable reason) {
      try {
        whenFailed.accept(
            reason instanceof GantryException || reason instanceof Error
                ? reason
                : new IllegalStateException("reading " + file.file() + " at " + offset(), reason));
      } finally {
        // The failure is reported before the read ends, so that a thread that waits for the last
        // read learns of it.
        end();
      }
    }

    private void end() {
      forget.run();
      synchronized (PendingReads.this) {
        if (underWay.remove(this)) {
          bytesUnderWay -= target().byteSize();
          hedged -= isHedged ? 1 : 0;
        }
        PendingReads.this.notifyAll();
      }
    }
  }
}
