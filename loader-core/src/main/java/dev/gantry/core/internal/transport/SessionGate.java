// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.MisuseException;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;

/// Whether a session is open, and who uses what it frees when it is closed: [#close] waits for them. Thread-safe.
final class SessionGate {
  private final ReentrantReadWriteLock use = new ReentrantReadWriteLock();
  private volatile boolean closed;

  /// @throws MisuseException if the session is closed
  void requireOpen() {
    if (closed) {
      throw new MisuseException("this session is closed");
    }
  }

  /// Does `work`, which may use what the session frees.
  <T> T using(Supplier<T> work) {
    use.readLock().lock();
    try {
      requireOpen();
      return work.get();
    } finally {
      use.readLock().unlock();
    }
  }

  /// @throws MisuseException if one of those who use the session calls this: closing it would wait for itself
  void requireMayClose() {
    if (use.getReadHoldCount() > 0) {
      throw new MisuseException("a session cannot be closed by a load of its own");
    }
  }

  /// Waits for those who use the session, then frees it, unless it is closed.
  ///
  /// @throws MisuseException as [#requireMayClose]
  void close(Runnable free) {
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
