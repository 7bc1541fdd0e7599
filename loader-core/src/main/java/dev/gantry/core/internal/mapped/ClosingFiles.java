// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.internal.memory.Cleanup;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/// Closes files that were given up. The driver takes a while for that, so no thread does it while it holds the
/// lock under which files are given up. Thread-safe.
final class ClosingFiles {
  private final Queue<KeptFile> files = new ConcurrentLinkedQueue<>();

  /// Held for reading by the threads that close files, and for writing by those that wait for them.
  private final ReadWriteLock closing = new ReentrantReadWriteLock();

  void add(KeptFile file) {
    files.add(file);
  }

  /// Closes all files that were given up. If the driver does not give up one, the others are still closed.
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

  /// Waits until other threads have closed their files, also if the caller is interrupted; then closes what was
  /// given up since.
  void await() {
    closing.writeLock().lock();
    try {
      closeAll();
    } finally {
      closing.writeLock().unlock();
    }
  }
}
