package dev.gantry.core.io;

/// Ends a transfer early: hand it to the options, and call [#cancel] from any thread. The transfer
/// frees what it took and fails with [dev.gantry.core.Failure.Cancelled]; reads under way end
/// first.
public final class Cancellation {
  private volatile boolean cancelled;

  public void cancel() {
    cancelled = true;
  }

  public boolean isCancelled() {
    return cancelled;
  }
}
