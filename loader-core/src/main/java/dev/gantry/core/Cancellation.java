// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Ends a transfer early: pass this object in the transfer's options, and call [#cancel] from any
/// thread. The transfer waits for its running reads, frees its memory and fails with
/// [dev.gantry.core.Failure.Cancelled]. Thread-safe.
public final class Cancellation {
  private final Map<Object, Runnable> listeners = new LinkedHashMap<>();
  private volatile boolean cancelled;

  /// Cancels the transfer, and runs the actions that [#whenCancelled] registered on this thread.
  /// If an action throws, the remaining actions still run, and then the first exception is thrown.
  /// A second call does nothing.
  public void cancel() {
    List<Runnable> told;
    synchronized (listeners) {
      cancelled = true;
      told = List.copyOf(listeners.values());
      listeners.clear();
    }
    // The internal Cleanup does the same, but this package depends on no internal one.
    Throwable thrown = null;
    for (Runnable action : told) {
      try {
        action.run();
      } catch (RuntimeException | Error e) {
        thrown = thrown == null ? e : thrown;
      }
    }
    switch (thrown) {
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      case null, default -> {}
    }
  }

  /// Whether [#cancel] was called.
  public boolean isCancelled() {
    return cancelled;
  }

  /// Registers `action`, which runs once, on the thread that calls [#cancel]. If [#cancel] was
  /// called already, `action` runs at once on the calling thread.
  ///
  /// @return an action that unregisters `action`
  public Runnable whenCancelled(Runnable action) {
    Object key = new Object();
    synchronized (listeners) {
      if (!cancelled) {
        listeners.put(key, action);
        return () -> forget(key);
      }
    }
    action.run();
    return () -> {};
  }

  private void forget(Object key) {
    synchronized (listeners) {
      listeners.remove(key);
    }
  }
}
