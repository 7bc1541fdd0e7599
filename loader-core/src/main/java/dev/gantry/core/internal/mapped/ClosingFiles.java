// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.TransferException;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/// Files that were given up. Closing them takes the driver a while, so no thread does it under the lock of those who
/// give them up. Thread-safe.
final class ClosingFiles {
  private final Deque<KeptFile> files = new ArrayDeque<>();
  private int closing;

  synchronized void add(KeptFile file) {
    files.add(file);
  }

  /// Closes what was given up. One file that the driver does not give up keeps no other.
  void closeAll() {
    TransferException failure = null;
    for (KeptFile next = next(); next != null; next = next()) {
      try {
        next.close();
      } catch (TransferException e) {
        failure = e;
      } finally {
        end();
      }
    }
    if (failure != null) {
      throw failure;
    }
  }

  private synchronized @Nullable KeptFile next() {
    KeptFile next = files.poll();
    closing += next == null ? 0 : 1;
    return next;
  }

  private synchronized void end() {
    closing--;
    notifyAll();
  }

  /// Waits for what other threads are closing, also if the caller is interrupted.
  synchronized void await() {
    boolean interrupted = false;
    while (closing > 0) {
      try {
        wait();
      } catch (InterruptedException _) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
