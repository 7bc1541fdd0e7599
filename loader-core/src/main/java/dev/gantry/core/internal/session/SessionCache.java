// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.internal.cache.CacheSettings;
import dev.gantry.core.internal.cache.RemoteCache;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.transport.TransferEngine;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// A session's cache of remote files. The engine closes it. Thread-safe.
final class SessionCache {
  private final TransferEngine engine;
  private @Nullable CacheSettings settings;
  private @Nullable RemoteCache cache;

  SessionCache(TransferEngine engine) {
    this.engine = engine;
  }

  /// Caches files that are opened from now on with these settings.
  synchronized void use(CacheSettings chosen) {
    if (!chosen.equals(settings)) {
      RemoteCache opened = new RemoteCache(engine.calls(), chosen.folder(), chosen.mostBytes());
      Cleanup.orUndo(() -> engine.use(opened), opened::close);
      settings = chosen;
      cache = opened;
    }
  }

  /// The state of the cache; empty if there is none.
  synchronized Optional<RemoteCache.Use> content() {
    return Optional.ofNullable(cache).map(RemoteCache::use);
  }
}
