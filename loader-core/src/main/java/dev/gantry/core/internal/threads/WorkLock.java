// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.threads;

import java.io.Serial;
import java.util.concurrent.locks.ReentrantLock;

/// A lock that a `try` statement releases. Taking the lock allocates no object, since code that
/// releases a resource must not need heap.
public final class WorkLock extends ReentrantLock implements AutoCloseable {
  @Serial private static final long serialVersionUID = 1;

  /// Takes the lock; [#close] releases it.
  public WorkLock taken() {
    lock();
    return this;
  }

  @Override
  public void close() {
    unlock();
  }
}
