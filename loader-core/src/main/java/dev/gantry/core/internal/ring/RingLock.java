// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import java.io.Serial;
import java.util.concurrent.locks.ReentrantLock;

/// A lock that a `try` releases. Taking it makes nothing: what ends a batch or the ring must not need the heap.
final class RingLock extends ReentrantLock implements AutoCloseable {
  @Serial private static final long serialVersionUID = 1;

  /// Takes the lock until this is closed.
  RingLock taken() {
    lock();
    return this;
  }

  @Override
  public void close() {
    unlock();
  }
}
