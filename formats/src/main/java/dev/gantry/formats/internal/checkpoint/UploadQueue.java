// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.GantryException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.formats.checkpoint.Retention;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.SequencedSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Copies saved checkpoints to another store in the background, one after the other. One that fails is
/// tried again with the next. Thread-safe.
final class UploadQueue implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(UploadQueue.class);

  private final RemoteFolder remote;
  private final Retention retention;
  private final ExecutorService thread =
      Executors.newSingleThreadExecutor(
          Thread.ofPlatform().name("gantry-uploader").daemon().factory());

  /// Those to come, in the order in which they were saved; guarded by this.
  private final SequencedSet<CheckpointFolder> waiting = new LinkedHashSet<>();

  private @Nullable CheckpointFolder current;
  private @Nullable Throwable failure;

  UploadQueue(RemoteFolder remote, Retention retention) {
    this.remote = remote;
    this.retention = retention;
  }

  RemoteFolder remote() {
    return remote;
  }

  synchronized void submit(CheckpointFolder checkpoint) {
    waiting.add(checkpoint);
    thread.execute(this::uploadAll);
  }

  /// Whether a checkpoint must stay on the disk: the one that is being uploaded, and the one that was
  /// saved last. Others that wait may be removed, and are not uploaded then.
  synchronized boolean holds(CheckpointFolder checkpoint) {
    return checkpoint.equals(current)
        || (!waiting.isEmpty() && checkpoint.equals(waiting.getLast()));
  }

  private synchronized Optional<CheckpointFolder> next() {
    current = waiting.isEmpty() ? null : waiting.removeFirst();
    return Optional.ofNullable(current);
  }

  private void uploadAll() {
    fail(null);
    for (Optional<CheckpointFolder> next = next(); next.isPresent(); next = next()) {
      CheckpointFolder checkpoint = next.get();
      try {
        remote.upload(checkpoint, retention);
        LOG.debug("{} is in {}", checkpoint.folder().getFileName(), remote);
      } catch (RuntimeException | Error e) {
        if (StoreFolder.hasNoManifest(checkpoint.folder())) {
          LOG.info("step {} was removed before it was uploaded", checkpoint.step());
        } else {
          LOG.warn(
              "step {} is not in {}, which is tried again with the next save: {}",
              checkpoint.step(),
              remote,
              String.valueOf(e instanceof GantryException ? e.getMessage() : e));
          putBack(checkpoint);
          fail(e);
          return;
        }
      }
    }
  }

  private synchronized void putBack(CheckpointFolder checkpoint) {
    waiting.addFirst(checkpoint);
    current = null;
  }

  private synchronized void fail(@Nullable Throwable reason) {
    failure = reason;
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
    // Waits for what was submitted.
    thread.close();
    throwFailure();
  }
}
