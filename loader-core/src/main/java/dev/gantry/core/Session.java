// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.nio.file.Path;
import java.util.ServiceLoader;

/// The resources that loads, saves and datasets share: stores, the cuFile driver, files that are
/// read again. A session opens these resources when they are first needed and keeps them from load
/// to load. Threads, and memory of devices that nothing uses now, are kept for all sessions.
///
/// Most programs never open a session: calls without a session use the process's own, which stays
/// open. Thread-safe.
public interface Session extends AutoCloseable {
  /// Opens a session of your own, which you close.
  static Session open() {
    return provider().open();
  }

  /// Opens a session with settings of libcufile. The settings take effect only if this session is
  /// the first of the process that opens cuFile's driver; otherwise the session does without the
  /// transports `gds` and `compat`, and its reports say why.
  static Session open(CuFileConfig settings) {
    return provider().open(MisuseException.requireGiven("settings", settings));
  }

  /// Returns the process's own session, which calls without a session use. It stays open until the
  /// process ends.
  static Session shared() {
    return provider().shared();
  }

  private static Provider provider() {
    return ServiceLoader.load(Provider.class, Session.class.getClassLoader())
        .findFirst()
        .orElseThrow(() ->
            new IllegalStateException(
                "loader-core's file META-INF/services/"
                    + Provider.class.getName()
                    + " is missing; a packaged program must keep it"));
  }

  /// Begins to open a device in the background and returns, so that the first load need not wait for
  /// it: the CUDA context (a quarter of a second), streams, and pinned buffers as a load with default
  /// options takes them. Call it as the first thing in a program that will load to a GPU.
  ///
  /// Buffers that nothing uses are freed after ten seconds. A device that cannot be opened is reported
  /// by the load. Does nothing for the host, and little for a device that is open.
  void prepare(Device device);

  /// Makes a folder on a local disk the cache of remote files that are opened from now on: the
  /// bytes that are read from such a file are kept in the folder, and later reads take them from
  /// the folder. Processes can share the folder. When it holds `mostBytes`, the least recently
  /// used files are removed. See `docs/cache.md`.
  ///
  /// The system property `gantry.cache` or the environment variable `GANTRY_CACHE` does the same for all
  /// sessions of a process.
  ///
  /// @param folder the cache's folder on a local disk, which only Gantry may use; a missing folder
  ///     is made. A folder that cannot be made, or that another user owns or may write to, is not
  ///     used: the log says so, and remote files are read without a cache
  /// @throws MisuseException if `mostBytes` is not positive, or the session is closed
  void cacheRemoteFiles(Path folder, long mostBytes);

  /// Returns this session's counters and the resources that the process holds. The call is cheap
  /// enough to be made every second.
  Metrics metrics();

  /// Frees the streams, device memory, pinned memory and host memory that all sessions keep for
  /// the next load or epoch and that are not in use. The call also gives up data files that are
  /// kept in memory for datasets. The next load or epoch makes them again.
  void freeIdle();

  /// Waits for the running loads, then frees the resources that the session keeps. Loaded arrays
  /// stay valid.
  ///
  /// @throws MisuseException if the listener of a running load calls this method, since the load
  ///     would wait for itself; or if this is the process's own session
  @Override
  void close();

  /// Opens sessions. [ServiceLoader] finds Gantry's only provider, since this package must not depend on its
  /// implementation.
  interface Provider {
    /// Does what [Session#open()] does.
    Session open();

    /// Does what [Session#open(CuFileConfig)] does.
    Session open(CuFileConfig settings);

    /// Does what [Session#shared()] does.
    Session shared();
  }
}
