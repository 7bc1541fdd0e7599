// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.threads;

import java.io.Serial;
import java.util.concurrent.locks.ReentrantLock;

/// A lock that a `try` releases. Taking it makes nothing: what gives something back or ends it must not need the heap.
public final class WorkLock extends ReentrantLock implements AutoCloseable {
  @Serial private static final long serialVersionUID = 1;

  /// Takes the lock until this is closed.
  public WorkLock taken() {
    lock();
    return this;
  }

  @Override
  public void close() {
    unlock();
  }
}
