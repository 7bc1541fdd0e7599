// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

/// Which threads have called libcufile: it has something of each of them until the thread ends, which must be
/// before the driver is closed. Thread-safe.
public final class CuFileCallers {
  private static final ThreadLocal<Boolean> IS_ONE = ThreadLocal.withInitial(() -> false);

  private CuFileCallers() {}

  /// This thread calls it.
  static void add() {
    IS_ONE.set(true);
  }

  /// Whether this thread has called it.
  public static boolean hasThisThread() {
    return IS_ONE.get();
  }
}
