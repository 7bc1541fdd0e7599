// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/// The lock of a blob, which Python's `huggingface_hub` takes while it fetches the bytes.
///
/// Processes of Gantry that fill one incomplete file share the lock. The cache stays correct
/// without the lock: a process that does not get it in time downloads the bytes again.
final class HubLock implements AutoCloseable {
  private static final int MODE = 0664;
  private static final long PAUSE_NANOS = 50_000_000;

  /// How long this process waits for another process that makes no progress.
  private static final long PATIENCE_NANOS = 15_000_000_000L;

  private final FileCalls calls;
  private final int descriptor;
  private final AtomicBoolean closed = new AtomicBoolean();

  private HubLock(FileCalls calls, int descriptor) {
    this.calls = calls;
    this.descriptor = descriptor;
  }

  /// Takes a lock, and waits for another process that has the lock for as long as that process
  /// makes progress.
  ///
  /// @param kind [FileCalls#LOCK_SH] or [FileCalls#LOCK_EX]
  /// @param progress gives a text that changes while the other process makes progress
  /// @param enough says whether the wait can end early, since the blob is complete
  /// @return a lock, which the process does not hold if it was not free in time
  static HubLock take(
      FileCalls calls, Path file, int kind, Supplier<String> progress, BooleanSupplier enough) {
    int flags = FileCalls.O_RDWR | FileCalls.O_CREAT | calls.noFollowFlag();
    int descriptor = FileCalls.retried(() -> calls.open(file, flags, MODE));
    HubLock lock = new HubLock(calls, descriptor);
    String seen = "";
    long since = System.nanoTime();
    while (descriptor >= 0
        && calls.flock(descriptor, kind | FileCalls.LOCK_NB) == -Errno.EAGAIN.code()
        && !enough.getAsBoolean()) {
      String now = progress.get();
      if (!now.equals(seen)) {
        seen = now;
        since = System.nanoTime();
      }
      if (System.nanoTime() - since > PATIENCE_NANOS || Thread.currentThread().isInterrupted()) {
        break;
      }
      LockSupport.parkNanos(PAUSE_NANOS);
    }
    return lock;
  }

  /// Frees the lock. A second call does nothing: by then, another file may have the descriptor's
  /// number.
  @Override
  public void close() {
    if (descriptor >= 0 && closed.compareAndSet(false, true)) {
      int _ = calls.close(descriptor);
    }
  }
}
