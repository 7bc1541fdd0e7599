// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.Cancellation;

/// Interrupts the thread that made the instance if an operation is cancelled, so that a store's
/// wait on this thread ends. It does so until it is closed.
final class Interruption implements AutoCloseable {
  private final Thread thread = Thread.currentThread();
  private final boolean wasInterrupted = thread.isInterrupted();
  private final Runnable forget;
  private boolean interrupted;
  private boolean closed;

  Interruption(Cancellation cancellation) {
    forget = cancellation.whenCancelled(this::interrupt);
  }

  private synchronized void interrupt() {
    if (!closed) {
      interrupted = true;
      thread.interrupt();
    }
  }

  /// Ends the interruptions. Only the thread that made the instance may call this. Afterwards, the
  /// thread is interrupted only if it was before.
  @Override
  public synchronized void close() {
    closed = true;
    forget.run();
    if (interrupted && !wasInterrupted) {
      boolean _ = Thread.interrupted();
    }
  }
}
