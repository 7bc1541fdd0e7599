// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.Failure;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.Snapshot;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.commit.SnapshotMemory;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.SaveOutcome;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Saves in the background: [#submit] returns when it has a snapshot, and one thread writes
/// snapshots to a store, in order.
///
/// A failed save fails its future. The next call of this queue rethrows it, so it cannot go
/// unnoticed. Thread-safe.
public final class SaveQueue implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SaveQueue.class);

  private final CheckpointStore store;
  private final WriteOptions options;
  private final BusyPolicy policy;
  private final SnapshotMemory memory;
  private final Semaphore room;
  private final ExecutorService writer =
      Executors.newSingleThreadExecutor(
          Thread.ofPlatform().name("gantry-saver").daemon().factory());
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
  private boolean closed;

  /// @param store which must stay open for as long as this
  public SaveQueue(
      CheckpointStore store, SnapshotLimits limits, BusyPolicy policy, WriteOptions options) {
    this.store = store;
    this.options = options;
    this.policy = policy;
    this.memory = new SnapshotMemory(limits);
    this.room = new Semaphore(policy == BusyPolicy.QUEUE ? 2 : 1);
  }

  /// Takes a snapshot of a checkpoint, and has it written. Whatever was queued on devices before
  /// comes first. When this returns, the tensors may change.
  ///
  /// Where there is no memory for a snapshot, this returns only when the checkpoint is on the disk.
  ///
  /// @return what becomes of the save; fails with what made the save fail. Cancelling it ends
  ///     nothing. What depends on it may run on the writing thread, and so must not wait for saves
  /// @throws TransferException if an earlier save failed, the snapshot fails, or the caller is
  ///     interrupted while it waits for an earlier save
  /// @throws MisuseException if this is closed, the caller is within [CheckpointStore#reading], or
  ///     a tensor cannot be written under its name
  public CompletableFuture<SaveOutcome> submit(UnsavedCheckpoint checkpoint) {
    throwFailure();
    if (!enter()) {
      return CompletableFuture.completedFuture(new SaveOutcome.Skipped(checkpoint.step()));
    }
    boolean handedOver = false;
    Optional<Snapshot> snapshot = Optional.empty();
    CompletableFuture<SaveOutcome> saved;
    try {
      // It may have come while this waited.
      throwFailure();
      requireOpen();
      SavePlan plan = store.plan(checkpoint);
      List<NewFile> files = plan.files();
      snapshot = memory.take(files);
      saved =
          snapshot.isPresent()
              ? write(plan, snapshot.get().files(), snapshot.get()::close)
              : write(plan, files, () -> {});
      handedOver = true;
    } finally {
      if (!handedOver) {
        snapshot.ifPresent(Snapshot::close);
        room.release();
      }
    }
    if (snapshot.isEmpty()) {
      LOG.warn("step {}: no memory for a snapshot, so the save is waited for", checkpoint.step());
      join(saved);
    }
    // A future that its holder completes, by a timeout for one, before its work begins, never
    // begins
    // it: the save would be lost, and its room and memory with it.
    return saved.copy();
  }

  private synchronized void requireOpen() {
    if (closed) {
      throw new MisuseException("this save queue is closed");
    }
  }

  private boolean enter() {
    if (policy == BusyPolicy.SKIP) {
      return room.tryAcquire();
    }
    try {
      room.acquire();
      return true;
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw new TransferException("save", "while it waited for another", new Failure.Cancelled());
    }
  }

  /// @throws MisuseException if this has been closed meanwhile
  private synchronized CompletableFuture<SaveOutcome> write(
      SavePlan plan, List<NewFile> files, Runnable giveBack) {
    requireOpen();
    return CompletableFuture.supplyAsync(
        () -> {
          try {
            return store.commit(plan, files, options).outcome();
          } catch (RuntimeException | Error e) {
            failure.compareAndSet(null, e);
            throw e;
          } finally {
            try {
              giveBack.run();
            } finally {
              room.release();
            }
          }
        },
        writer);
  }

  /// Returns when the save has ended, one way or the other; its failure is for the next call.
  private static void join(CompletableFuture<SaveOutcome> save) {
    try {
      save.join();
    } catch (CompletionException _) {
      // Kept in `failure`.
    }
  }

  /// Waits until all that was submitted is on the disk.
  ///
  /// @throws TransferException if a save failed and no call has said so yet
  public void await() {
    afterAll().ifPresentOrElse(CompletableFuture::join, this::awaitWriter);
    throwFailure();
  }

  /// Ends when all that was submitted has; empty where this is closed, and the writer ends then.
  private synchronized Optional<CompletableFuture<Void>> afterAll() {
    return closed ? Optional.empty() : Optional.of(CompletableFuture.runAsync(() -> {}, writer));
  }

  private void throwFailure() {
    switch (failure.getAndSet(null)) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      case Throwable e -> throw new IllegalStateException("a save failed", e);
    }
  }

  /// Waits until all that was submitted is on the disk, and frees the snapshots' memory.
  ///
  /// @throws TransferException if a save failed and no call has said so yet
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      writer.shutdown();
    }
    awaitWriter();
    memory.close();
    throwFailure();
  }

  /// Not cut short by an interruption: what was submitted is to be saved.
  private void awaitWriter() {
    boolean interrupted = false;
    boolean ended = false;
    while (!ended) {
      try {
        ended = writer.awaitTermination(Long.MAX_VALUE, TimeUnit.NANOSECONDS);
      } catch (InterruptedException _) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
