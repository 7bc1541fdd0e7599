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

/// Copies saved checkpoints to another store in the background, one after the other. A failed
/// upload is tried again together with the next upload, and does not delay other uploads unless
/// the store itself fails. Thread-safe.
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

  /// The checkpoint that was submitted last.
  private @Nullable CheckpointFolder newest;

  private @Nullable Throwable failure;

  /// @param afterUpload called by the uploading thread after each upload: the local checkpoint may be
  ///     removed now
  UploadQueue(RemoteFolder remote, Retention retention, Runnable afterUpload) {
    this.remote = remote;
    this.retention = retention;
    this.afterUpload = afterUpload;
  }

  RemoteFolder remote() {
    return remote;
  }

  /// Submits the checkpoints that earlier processes saved and did not upload.
  void submitMissing() {
    remote.missing(retention).forEach(this::submit);
  }

  synchronized void submit(CheckpointFolder checkpoint) {
    waiting.add(checkpoint);
    newest = checkpoint;
    thread.execute(this::uploadAll);
  }

  /// Takes a checkpoint out of the queue so that it can be removed from the disk without being uploaded. It
  /// refuses the checkpoint that is being uploaded and the one that was submitted last.
  ///
  /// @return whether the checkpoint may be removed
  synchronized boolean letGo(CheckpointFolder checkpoint) {
    if (checkpoint.equals(current) || (checkpoint.equals(newest) && waiting.contains(checkpoint))) {
      return false;
    }
    if (waiting.remove(checkpoint)) {
      LOG.info("step {} is removed before it is uploaded", checkpoint.step());
    }
    return true;
  }

  /// @param done the checkpoints that have failed in this round, which are passed over
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

  /// Whether the store itself has failed, so that the next upload would fail, too.
  private boolean isOfStore(Throwable failure) {
    return failure instanceof TransferException transfer
        && transfer.failure() instanceof Failure.Remote(int status, _)
        // A failure without a status may be of the local file.
        && (status > 0 || !remote.isOurs());
  }

  private synchronized void fail(@Nullable Throwable reason) {
    // Keeps the first failure of a round.
    if (failure == null || reason == null) {
      failure = reason;
    }
  }

  /// Tries failed uploads once more, and waits until all submitted checkpoints are in the store.
  ///
  /// @throws GantryException if a checkpoint could not be uploaded
  void await() {
    CompletableFuture.runAsync(this::uploadAll, thread).join();
    throwFailure();
  }

  private synchronized void throwFailure() {
    Cleanup.rethrow(failure, "an upload failed");
  }

  /// Waits as [#await] does, and ends the thread.
  @Override
  public void close() {
    thread.execute(this::uploadAll);
    thread.shutdown();
    // An interruption does not end the wait, because submitted checkpoints must be uploaded.
    Cleanup.awaitEnd(thread);
    throwFailure();
  }
}
