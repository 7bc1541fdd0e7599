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
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Reads of remote files: one thread starts them, and many are under way at once. The first failure ends all of them.
public final class PendingReads implements AutoCloseable {
  private final int most;
  private final Set<Pending> underWay = new HashSet<>();
  private @Nullable Throwable failure;

  /// @param most the most reads that are under way at once
  public PendingReads(int most) {
    this.most = most;
  }

  /// Begins a read of the first `required` bytes of `target`, from `offset` in the file. First waits until fewer than
  /// the most reads are under way.
  ///
  /// @param file a remote file
  /// @param whenDone run on any thread when the bytes are there; if it throws, the read has failed
  /// @throws GantryException if a read that was started here has failed
  public void start(
      SourceFile file, MemorySegment target, long offset, long required, Runnable whenDone) {
    await(most - 1);
    Cleanup.rethrow(failure(), "a store failed");
    Pending read = new Pending(file, target.asSlice(0, required), offset, whenDone);
    synchronized (this) {
      underWay.add(read);
    }
    try {
      read.begin();
    } catch (RuntimeException | Error e) {
      read.failed(e);
    }
  }

  /// Waits until all reads have ended. Afterwards others may be started, even if one had failed.
  ///
  /// @throws GantryException if one has failed
  public void drain() {
    await(0);
    Cleanup.rethrow(takeFailure(), "a store failed");
  }

  /// Ends the reads that are under way, and returns when none of them touches memory any more.
  @Override
  public void close() {
    cancel();
    await(0);
  }

  /// Waits until at most `reads` reads are under way. An interruption of the caller cancels them, but the wait goes on:
  /// their targets are touched until they have ended.
  private void await(int reads) {
    boolean interrupted = false;
    while (!awaited(reads)) {
      interrupted = true;
      fail(new TransferException("read", "by the caller", new Failure.Cancelled()));
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private boolean awaited(int reads) {
    try {
      return hasAtMost(reads) || WorkerThreads.await(() -> awaitOnce(reads));
    } catch (InterruptedException _) {
      return false;
    }
  }

  private synchronized boolean hasAtMost(int reads) {
    return underWay.size() <= reads;
  }

  private synchronized boolean awaitOnce(int reads) throws InterruptedException {
    while (underWay.size() > reads) {
      wait();
    }
    return true;
  }

  private void fail(Throwable reason) {
    synchronized (this) {
      failure = failure == null ? reason : failure;
    }
    cancel();
  }

  /// Cancels all reads without holding the lock, since the store's own threads may wait for it.
  private void cancel() {
    List<Pending> ending;
    synchronized (this) {
      ending = List.copyOf(underWay);
    }
    ending.forEach(read -> read.cancellation().cancel());
  }

  private synchronized @Nullable Throwable failure() {
    return failure;
  }

  private synchronized @Nullable Throwable takeFailure() {
    Throwable taken = failure;
    failure = null;
    return taken;
  }

  private final class Pending extends ReadRequest {
    private final SourceFile file;
    private final Runnable whenDone;
    private volatile Runnable forget = () -> {};

    Pending(SourceFile file, MemorySegment target, long offset, Runnable whenDone) {
      super(target, offset, new Cancellation());
      this.file = file;
      this.whenDone = whenDone;
    }

    void begin() {
      forget = file.whenEnded(cancellation()::cancel);
      file.stored().read(this);
    }

    @Override
    public void completed() {
      try {
        whenDone.run();
      } catch (RuntimeException | Error e) {
        failed(e);
        return;
      }
      end();
    }

    @Override
    public void failed(Throwable reason) {
      Throwable shown =
          reason instanceof GantryException || reason instanceof Error
              ? reason
              : new IllegalStateException("reading " + file.file() + " at " + offset(), reason);
      // The failure is noted before the read ends, so that a thread that waits for the last read
      // finds it.
      fail(shown);
      end();
    }

    private void end() {
      forget.run();
      synchronized (PendingReads.this) {
        underWay.remove(this);
        PendingReads.this.notifyAll();
      }
    }
  }
}
