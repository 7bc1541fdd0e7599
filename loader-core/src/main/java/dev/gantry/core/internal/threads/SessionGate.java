// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.threads;

import dev.gantry.core.MisuseException;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;

/// Knows whether a session is open, and which calls use what closing it frees: [#close] waits for these. Thread-safe.
public final class SessionGate {
  private final ReentrantReadWriteLock use = new ReentrantReadWriteLock();
  private volatile boolean closed;

  /// @throws MisuseException if the session is closed
  public void requireOpen() {
    if (closed) {
      throw new MisuseException("this session is closed");
    }
  }

  /// Does `work`, which may use what closing the session frees.
  public <T> T using(Supplier<T> work) {
    use.readLock().lock();
    try {
      requireOpen();
      return work.get();
    } finally {
      use.readLock().unlock();
    }
  }

  /// @throws MisuseException if `work` of [#using] calls this: closing the session would wait for itself
  public void requireMayClose() {
    if (use.getReadHoldCount() > 0) {
      throw new MisuseException("a session cannot be closed by a load of its own");
    }
  }

  /// Waits for the calls that use the session, then runs `free`. Does nothing if the session is closed.
  ///
  /// @throws MisuseException if [#requireMayClose] does
  public void close(Runnable free) {
    requireMayClose();
    use.writeLock().lock();
    try {
      if (!closed) {
        closed = true;
        free.run();
      }
    } finally {
      use.writeLock().unlock();
    }
  }
}
