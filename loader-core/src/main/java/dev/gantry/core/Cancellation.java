// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Ends a transfer early: pass it in the options, and call [#cancel] from any thread. The transfer
/// waits for its running reads, frees its memory and fails with
/// [dev.gantry.core.Failure.Cancelled].
public final class Cancellation {
  private final Map<Object, Runnable> listeners = new LinkedHashMap<>();
  private volatile boolean cancelled;

  /// Cancels, and runs the actions of [#whenCancelled] on this thread, all of them also if some throw. A second call does
  /// nothing.
  public void cancel() {
    List<Runnable> told;
    synchronized (listeners) {
      cancelled = true;
      told = List.copyOf(listeners.values());
      listeners.clear();
    }
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

  /// Runs `action` once, on the thread that cancels; at once on this thread if [#cancel] was called already.
  ///
  /// @return unregisters `action` when it is run
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
