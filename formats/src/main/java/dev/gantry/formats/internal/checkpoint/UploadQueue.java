// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.Failure;
import dev.gantry.core.GantryException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.formats.checkpoint.Retention;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.SequencedSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Copies saved checkpoints to another store in the background, one after the other. One that fails is
/// tried again with the next, and holds up no other unless the store refuses. Thread-safe.
final class UploadQueue implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(UploadQueue.class);

  private final RemoteFolder remote;
  private final Retention retention;
  private final Runnable afterUpload;
  private final ExecutorService thread =
      Executors.newSingleThreadExecutor(
          Thread.ofPlatform().name("gantry-uploader").daemon().factory());

  /// The checkpoints that are not uploaded yet, in the order in which they were saved; guarded by this.
  private final SequencedSet<CheckpointFolder> waiting = new LinkedHashSet<>();

  private @Nullable CheckpointFolder current;

  /// The one that was submitted last.
  private @Nullable CheckpointFolder newest;

  private @Nullable Throwable failure;

  /// @param afterUpload called by the thread that uploads: what was held may be removed now
  UploadQueue(RemoteFolder remote, Retention retention, Runnable afterUpload) {
    this.remote = remote;
    this.retention = retention;
    this.afterUpload = afterUpload;
  }

  RemoteFolder remote() {
    return remote;
  }

  synchronized void submit(CheckpointFolder checkpoint) {
    waiting.add(checkpoint);
    newest = checkpoint;
    thread.execute(this::uploadAll);
  }

  /// Gives up a checkpoint that is to be removed from the disk, unless it must stay: the one that is being uploaded, and
  /// the one that was saved last. It is not uploaded then.
  ///
  /// @return whether it may be removed
  synchronized boolean letGo(CheckpointFolder checkpoint) {
    if (checkpoint.equals(current) || (checkpoint.equals(newest) && waiting.contains(checkpoint))) {
      return false;
    }
    if (waiting.remove(checkpoint)) {
      LOG.info("step {} is removed before it is uploaded", checkpoint.step());
    }
    return true;
  }

  /// @param done which are not to be tried again for now
  private synchronized Optional<CheckpointFolder> next(Set<CheckpointFolder> done) {
    Optional<CheckpointFolder> next =
        waiting.stream().filter(checkpoint -> !done.contains(checkpoint)).findFirst();
    current = next.orElse(null);
    return next;
  }

  private synchronized void ended(CheckpointFolder checkpoint) {
    waiting.remove(checkpoint);
    current = null;
  }

  private void uploadAll() {
    fail(null);
    Set<CheckpointFolder> failed = new HashSet<>();
    for (Optional<CheckpointFolder> next = next(failed); next.isPresent(); next = next(failed)) {
      CheckpointFolder checkpoint = next.get();
      try {
        remote.upload(checkpoint, retention);
        LOG.debug("{} is in {}", checkpoint.folder().getFileName(), remote);
        ended(checkpoint);
        afterUpload.run();
      } catch (RuntimeException | Error e) {
        if (StoreFolder.hasNoManifest(checkpoint.folder())) {
          LOG.info("step {} was removed before it was uploaded", checkpoint.step());
          ended(checkpoint);
          continue;
        }
        LOG.warn(
            "step {} is not in {}, which is tried again with the next save: {}",
            checkpoint.step(),
            remote,
            String.valueOf(e instanceof GantryException ? e.getMessage() : e));
        failed.add(checkpoint);
        fail(e);
        if (isOfStore(e)) {
          break;
        }
      }
    }
    synchronized (this) {
      current = null;
    }
  }

  /// Whether the next checkpoint would fail, too.
  private boolean isOfStore(Throwable failure) {
    return failure instanceof TransferException transfer
        && transfer.failure() instanceof Failure.Remote(int status, _)
        // Without a status it may be the file that could not be read.
        && (status > 0 || !remote.isOurs());
  }

  private synchronized void fail(@Nullable Throwable reason) {
    // The first one of a round.
    if (failure == null || reason == null) {
      failure = reason;
    }
  }

  /// Waits until all that was submitted is in the store, and tries what failed once more.
  ///
  /// @throws GantryException if a checkpoint could not be uploaded
  void await() {
    CompletableFuture.runAsync(this::uploadAll, thread).join();
    throwFailure();
  }

  private synchronized void throwFailure() {
    Cleanup.rethrow(failure, "an upload failed");
  }

  /// As [#await], and ends the thread.
  @Override
  public void close() {
    thread.execute(this::uploadAll);
    thread.shutdown();
    // Not cut short by an interruption: what was submitted is to be uploaded.
    Cleanup.awaitEnd(thread);
    throwFailure();
  }
}
