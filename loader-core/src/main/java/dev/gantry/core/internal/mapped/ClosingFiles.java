// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.internal.memory.Cleanup;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/// Closes files that were given up. The driver takes long to unregister a file, so threads close
/// files only outside the lock of [KeptFiles]. Thread-safe.
final class ClosingFiles {
  private final Queue<KeptFile> files = new ConcurrentLinkedQueue<>();

  /// Threads that close files hold the read lock; a thread that waits for them takes the write
  /// lock.
  private final ReadWriteLock closing = new ReentrantReadWriteLock();

  void add(KeptFile file) {
    files.add(file);
  }

  /// Closes all files that were given up. If closing one fails, the others are still closed.
  void closeAll() {
    closing.readLock().lock();
    try {
      List<Runnable> actions = new ArrayList<>();
      for (KeptFile next = files.poll(); next != null; next = files.poll()) {
        actions.add(next::close);
      }
      Cleanup.runAll(actions);
    } finally {
      closing.readLock().unlock();
    }
  }

  /// Waits until other threads have closed their files, also if the caller is interrupted; then
  /// closes the files that were given up since.
  void await() {
    closing.writeLock().lock();
    try {
      closeAll();
    } finally {
      closing.writeLock().unlock();
    }
  }
}
