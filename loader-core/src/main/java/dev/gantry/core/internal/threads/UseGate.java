// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.threads;

import dev.gantry.core.MisuseException;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;

/// Guards an object that can be closed. Calls of [#using] use the object, and [#close] waits for
/// them before it frees the object's resources. Thread-safe.
public final class UseGate {
  private final String what;
  private final String call;
  private final ReentrantReadWriteLock use = new ReentrantReadWriteLock();
  private volatile boolean closed;

  /// @param what the word for the object, for messages, such as `session`
  /// @param call the word for a call that uses the object, for messages
  public UseGate(String what, String call) {
    this.what = what;
    this.call = call;
  }

  /// @throws MisuseException if it is closed
  public void requireOpen() {
    if (closed) {
      throw new MisuseException("this " + what + " is closed");
    }
  }

  /// Runs `work`, which may use the resources that closing frees.
  ///
  /// @throws MisuseException if it is closed
  public <T> T using(Supplier<T> work) {
    use.readLock().lock();
    try {
      requireOpen();
      return work.get();
    } finally {
      use.readLock().unlock();
    }
  }

  /// @throws MisuseException if `work` of [#using] calls this: closing would wait for itself
  public void requireMayClose() {
    if (use.getReadHoldCount() > 0) {
      throw new MisuseException(
          "this %s cannot be closed by a %s of its own".formatted(what, call));
    }
  }

  /// Waits for the running calls of [#using], then runs `free`. Does nothing if the object is
  /// closed already.
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
