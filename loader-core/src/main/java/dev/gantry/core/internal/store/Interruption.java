// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.Cancellation;

/// Interrupts the thread that made this when an operation is cancelled, so that what a store waits for ends. Works
/// until it is closed.
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

  /// Ends this. The thread that made it must call this; the thread is then interrupted only if it was before.
  @Override
  public synchronized void close() {
    closed = true;
    forget.run();
    if (interrupted && !wasInterrupted) {
      boolean _ = Thread.interrupted();
    }
  }
}
