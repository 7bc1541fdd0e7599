// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.Snapshot;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.commit.SnapshotMemory;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.SaveOutcome;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Saves checkpoints in the background: [#submit] returns when it has a snapshot, and one thread writes the
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
  private final ExecutorService writer = thread("gantry-saver");

  /// The thread that takes memory for snapshots, and the snapshots that overlap the training.
  private final ExecutorService copier;

  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
  private CompletableFuture<Void> copying = CompletableFuture.completedFuture(null);
  private boolean closed;

  /// @param store must stay open until this is closed
  public SaveQueue(
      CheckpointStore store, SnapshotLimits limits, BusyPolicy policy, WriteOptions options) {
    this(store, limits, policy, options, newCopier());
  }

  /// @param copier an executor with one thread, which this shuts down; tests pass one that they can hold up
  public SaveQueue(
      CheckpointStore store,
      SnapshotLimits limits,
      BusyPolicy policy,
      WriteOptions options,
      ExecutorService copier) {
    this.copier = copier;
    this.store = store;
    this.options = options;
    this.policy = policy;
    this.memory = new SnapshotMemory(limits);
    this.room = new Semaphore(policy == BusyPolicy.QUEUE ? 2 : 1);
  }

  /// Makes the thread that takes memory and overlapped snapshots.
  public static ExecutorService newCopier() {
    return thread("gantry-snapshot");
  }

  private static ExecutorService thread(String name) {
    return Executors.newSingleThreadExecutor(Thread.ofPlatform().name(name).daemon().factory());
  }

  /// Allocates a snapshot's memory in the background, so that the first save need not wait for
  /// it. A failure is only logged, since the save tries again.
  ///
  /// @param checkpoint has tensors of the sizes that will be saved; it is not used after this returns
  /// @return completes when the memory is there, or cannot be had
  /// @throws MisuseException if this is closed, or a tensor cannot be written under its name
  public synchronized CompletableFuture<Void> prepare(UnsavedCheckpoint checkpoint) {
    requireOpen();
    List<NewFile> files = store.layout(checkpoint);
    return CompletableFuture.runAsync(
        () -> {
          try {
            if (!memory.prepare(files)) {
              LOG.info("no memory for a snapshot could be prepared: {}", memory.words(files));
            }
          } catch (RuntimeException | OutOfMemoryError e) {
            LOG.info("no memory for a snapshot could be prepared", e);
          }
        },
        copier);
  }

  /// Takes a snapshot of a checkpoint, and has it written in the background. The snapshot includes all work
  /// that was queued on the devices before. When this returns, the tensors may change.
  ///
  /// If there is too little memory for a snapshot, this returns only after the checkpoint is on
  /// the disk.
  ///
  /// @return the save's outcome or its failure. Cancelling the future does not stop the save. Dependent
  ///     stages may run on the writing thread, so they must not wait for saves
  /// @throws TransferException if an earlier save failed, the snapshot fails, or the caller is
  ///     interrupted while it waits for an earlier save
  /// @throws MisuseException if this is closed, the caller is within [CheckpointStore#reading], or
  ///     a tensor cannot be written under its name
  public CompletableFuture<SaveOutcome> submit(UnsavedCheckpoint checkpoint) {
    if (!enter(checkpoint.step())) {
      return CompletableFuture.completedFuture(new SaveOutcome.Skipped(checkpoint.step()));
    }
    Entered entered = reserve(checkpoint);
    if (entered.memory().isEmpty()) {
      return writeAndWait(entered);
    }
    SnapshotMemory.Reserved reserved = entered.memory().get();
    try {
      Snapshot snapshot = reserved.fill();
      return write(entered.plan(), snapshot.files(), snapshot::close);
    } catch (RuntimeException | Error e) {
      giveBack(reserved, e);
      throw e;
    }
  }

  /// Returns a save's snapshot memory and its place among the admitted saves after `failure`.
  private void giveBack(SnapshotMemory.Reserved reserved, Throwable failure) {
    Cleanup.after(failure, SnapshotMemory.Reserved::giveBack, reserved);
    room.release();
  }

  /// A save whose snapshot is taken while the training continues.
  ///
  /// @param saved the save's outcome or its failure
  /// @param copied completes when the tensors may change; it never fails
  public record Overlapped(CompletableFuture<SaveOutcome> saved, CompletableFuture<Void> copied) {}

  /// Saves as [#submit] does, but another thread takes the snapshot. A failed snapshot fails the save.
  ///
  /// @param check called on that thread when the tensors are copied. If it throws, for example because they
  ///     have changed meanwhile, the save fails
  /// @param over called when the tensors may change, unless this throws
  public Overlapped submitOverlapped(UnsavedCheckpoint checkpoint, Runnable check, Runnable over) {
    if (!enter(checkpoint.step())) {
      over.run();
      return new Overlapped(
          CompletableFuture.completedFuture(new SaveOutcome.Skipped(checkpoint.step())),
          CompletableFuture.completedFuture(null));
    }
    Entered entered = reserve(checkpoint);
    if (entered.memory().isEmpty()) {
      CompletableFuture<SaveOutcome> saved = writeAndWait(entered);
      over.run();
      return new Overlapped(saved, CompletableFuture.completedFuture(null));
    }
    SnapshotMemory.Reserved reserved = entered.memory().get();
    try {
      return copyAndWrite(entered.plan(), reserved, check, over);
    } catch (RuntimeException | Error e) {
      giveBack(reserved, e);
      throw e;
    }
  }

  private synchronized Overlapped copyAndWrite(
      SavePlan plan, SnapshotMemory.Reserved reserved, Runnable check, Runnable over) {
    requireOpen();
    CompletableFuture<SaveOutcome> saved = new CompletableFuture<>();
    CompletableFuture<Void> copied =
        CompletableFuture.runAsync(
            () -> {
              try {
                Snapshot snapshot = reserved.fill();
                check.run();
                writer.execute(() -> commit(plan, snapshot.files(), snapshot::close, saved));
              } catch (RuntimeException | Error e) {
                Cleanup.after(e, SnapshotMemory.Reserved::giveBack, reserved);
                end(saved, null, e);
              } finally {
                over.run();
              }
            },
            copier);
    copying = copied;
    return new Overlapped(saved.copy(), copied);
  }

  /// Waits until no snapshot is being taken any more: all tensors that were submitted may change.
  public void awaitSnapshot() {
    CompletableFuture<Void> last;
    synchronized (this) {
      last = copying;
    }
    last.join();
  }

  /// A save that was admitted.
  ///
  /// @param memory the snapshot's memory; empty if there was too little memory for a snapshot
  private record Entered(SavePlan plan, Optional<SnapshotMemory.Reserved> memory) {}

  private Entered reserve(UnsavedCheckpoint checkpoint) {
    return Cleanup.orUndo(
        () -> {
          // An earlier save may have failed while this one waited.
          throwFailure();
          requireOpen();
          SavePlan plan = store.plan(checkpoint);
          return new Entered(plan, memory.reserve(plan.files()));
        },
        room::release);
  }

  private CompletableFuture<SaveOutcome> writeAndWait(Entered entered) {
    SavePlan plan = entered.plan();
    CompletableFuture<SaveOutcome> saved =
        Cleanup.orUndo(() -> write(plan, plan.files(), () -> {}), room::release);
    LOG.warn(
        "step {}: no memory for a snapshot, so the save is waited for: {}",
        plan.checkpoint().step(),
        memory.words(plan.files()));
    join(saved);
    return saved;
  }

  private synchronized void requireOpen() {
    if (closed) {
      throw new MisuseException("this save queue is closed");
    }
  }

  /// Waits until another save may begin, or skips the save, as the policy says; false if the save
  /// is skipped.
  private boolean enter(long step) {
    throwFailure();
    if (policy == BusyPolicy.SKIP) {
      return room.tryAcquire();
    }
    try {
      room.acquire();
      return true;
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw WorkerThreads.interrupted("save", "the checkpoint of step " + step);
    }
  }

  /// Queues a save behind all saves that were planned before it, also behind one whose snapshot another
  /// thread is taking.
  ///
  /// @throws MisuseException if this has been closed meanwhile
  private CompletableFuture<SaveOutcome> write(
      SavePlan plan, List<NewFile> files, Runnable giveBack) {
    awaitSnapshot();
    synchronized (this) {
      requireOpen();
      CompletableFuture<SaveOutcome> saved = new CompletableFuture<>();
      // Returns a copy, since its holder may complete it, for example by a timeout.
      CompletableFuture<SaveOutcome> copy = saved.copy();
      writer.execute(() -> commit(plan, files, giveBack, saved));
      return copy;
    }
  }

  private void commit(
      SavePlan plan, List<NewFile> files, Runnable giveBack, CompletableFuture<SaveOutcome> saved) {
    SaveOutcome outcome = null;
    Throwable reason = null;
    try {
      outcome = store.commit(plan, files, options).outcome();
    } catch (RuntimeException | Error e) {
      reason = e;
    }
    try {
      giveBack.run();
    } finally {
      end(saved, outcome, reason);
    }
  }

  /// Ends a save. The failure is kept for the next call to throw before the next save may begin.
  ///
  /// @param outcome null after a failure
  private void end(
      CompletableFuture<SaveOutcome> saved,
      @Nullable SaveOutcome outcome,
      @Nullable Throwable reason) {
    if (reason != null) {
      boolean _ = failure.compareAndSet(null, reason);
    }
    room.release();
    boolean _ =
        outcome != null
            ? saved.complete(outcome)
            : saved.completeExceptionally(Objects.requireNonNull(reason));
  }

  /// Waits for the end of the save; the next call throws its failure.
  private static void join(CompletableFuture<SaveOutcome> save) {
    try {
      save.join();
    } catch (CompletionException _) {
      // The field `failure` keeps it.
    }
  }

  /// Waits until all submitted saves are on the disk.
  ///
  /// @throws TransferException if a save failed and no call has thrown its failure yet
  public void await() {
    awaitSnapshot();
    afterAll().ifPresentOrElse(CompletableFuture::join, () -> Cleanup.awaitEnd(writer));
    throwFailure();
  }

  /// Returns a future that completes when all submitted saves have ended; empty if this is closed, since
  /// the writer ends then.
  private synchronized Optional<CompletableFuture<Void>> afterAll() {
    return closed ? Optional.empty() : Optional.of(CompletableFuture.runAsync(() -> {}, writer));
  }

  private void throwFailure() {
    Cleanup.rethrow(failure.getAndSet(null), "a save failed");
  }

  /// Waits until all submitted saves are on the disk, and frees the snapshots' memory.
  ///
  /// @throws TransferException if a save failed and no call has thrown its failure yet
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      copier.shutdown();
    }
    try {
      // The snapshots that the copier has taken are still written.
      Cleanup.awaitEnd(copier);
      writer.shutdown();
      Cleanup.awaitEnd(writer);
    } finally {
      writer.shutdown();
      memory.close();
    }
    throwFailure();
  }
}
