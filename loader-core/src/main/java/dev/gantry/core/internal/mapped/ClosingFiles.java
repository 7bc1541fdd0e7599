// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.internal.memory.Cleanup;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/// Files that were given up. Closing them takes the driver a while, so no thread does it under the lock of those who
/// give them up. Thread-safe.
final class ClosingFiles {
  private final Queue<KeptFile> files = new ConcurrentLinkedQueue<>();

  /// Held for reading by the threads that close files, and for writing by those that wait for them.
  private final ReadWriteLock closing = new ReentrantReadWriteLock();

  void add(KeptFile file) {
    files.add(file);
  }

  /// Closes what was given up. One file that the driver does not give up keeps no other.
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

  /// Waits for what other threads are closing, also if the caller is interrupted, and closes what was given up since.
  void await() {
    closing.writeLock().lock();
    try {
      closeAll();
    } finally {
      closing.writeLock().unlock();
    }
  }
}
