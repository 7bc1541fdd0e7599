package dev.gantry.core;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Ends a transfer early: hand it to the options, and call [#cancel] from any thread. The transfer
/// frees what it took and fails with [dev.gantry.core.Failure.Cancelled]; reads under way end
/// first, and waiting for buffers ends at once.
public final class Cancellation {
  private final Map<Object, Runnable> listeners = new LinkedHashMap<>();
  private volatile boolean cancelled;

  public void cancel() {
    List<Runnable> told;
    synchronized (listeners) {
      cancelled = true;
      told = List.copyOf(listeners.values());
      listeners.clear();
    }
    told.forEach(Runnable::run);
  }

  public boolean isCancelled() {
    return cancelled;
  }

  /// For those who sleep meanwhile: has `action` run once on cancellation, on the thread that
  /// cancels; at once, and here, where that has happened already.
  ///
  /// @return forgets the action
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
