// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.internal.memory.Cleanup;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Consumer;

/// Closes files that were given up. The driver takes long to unregister a file, so threads close
/// files only outside the lock of [KeptFiles]. Thread-safe.
final class ClosingFiles {
  private final Queue<KeptFile> files = new ConcurrentLinkedQueue<>();

  /// Made with the queue, so that closing files needs no heap.
  private final Consumer<KeptFile> closeOnce = this::closeOnce;

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
      Cleanup.forEach(files, closeOnce);
    } finally {
      closing.readLock().unlock();
    }
  }

  /// Closes a file unless another thread closes it.
  private void closeOnce(KeptFile file) {
    if (files.remove(file)) {
      file.close();
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
