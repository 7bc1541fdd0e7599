// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

/// What loads, saves and datasets share: reader threads, pinned buffers, the cuFile driver. A session
/// opens these when they are first needed and keeps them from load to load.
///
/// Most programs never name one: calls without a session use the process's own, which stays open.
/// Thread-safe.
public interface Session extends AutoCloseable {
  /// Frees the pinned buffers that no load uses now. The next load allocates them again.
  void freeIdle();

  /// Waits for the running loads, then frees what the session keeps. What was loaded stays.
  ///
  /// @throws MisuseException if a load's own listener calls it, which would wait for itself
  @Override
  void close();
}
