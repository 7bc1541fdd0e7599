// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import dev.gantry.core.MisuseException;
import java.util.function.BooleanSupplier;

/// The entries that all batches of a driver may have under way at once: its `io_batchsize`.
/// Thread-safe.
public final class BatchBudget {
  private final int most;
  private int free;

  public BatchBudget(int most) {
    if (most < 1) {
      throw new MisuseException("a batch needs room for an entry, not for " + most);
    }
    this.most = most;
    this.free = most;
  }

  /// In all, whether free or not.
  public int most() {
    return most;
  }

  /// Takes room for up to `wanted` entries. Waits while there is none.
  ///
  /// @param mayContinue whether to go on waiting; asked again after each [#wake]
  /// @return 0 if the caller may not continue
  int take(int wanted, BooleanSupplier mayContinue) {
    synchronized (this) {
      while (mayContinue.getAsBoolean()) {
        if (free > 0) {
          int taken = Math.min(wanted, free);
          free -= taken;
          return taken;
        }
        try {
          wait();
        } catch (InterruptedException _) {
          Thread.currentThread().interrupt();
          return 0;
        }
      }
      return 0;
    }
  }

  synchronized void giveBack(int entries) {
    free += entries;
    notifyAll();
  }

  /// Makes all who wait ask whether they may continue.
  public synchronized void wake() {
    notifyAll();
  }
}
