// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.internal.http.HttpStore;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.StoreContract;
import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/// A cached store keeps the rules of all stores.
class CachedStoreTest extends StoreContract {
  private final RangeServer server = new RangeServer();
  private final HttpStore http = new HttpStore();

  @TempDir private Path folder;
  private Store store;

  @BeforeEach
  void open() {
    RemoteCache cache = new RemoteCache(Libc.INSTANCE, new CacheSettings(folder, 1L << 30));
    store =
        new Store() {
          @Override
          public Set<String> schemes() {
            return http.schemes();
          }

          @Override
          public StoredFile open(Location file, CachePolicy policy) {
            return cache.open((Location.Remote) file, policy, () -> http.open(file, policy));
          }

          @Override
          public void close() {
            cache.close();
            http.close();
          }
        };
  }

  @AfterEach
  void close() {
    store.close();
    server.close();
  }

  @Override
  protected Store store() {
    return store;
  }

  @Override
  protected Location put(String name, byte[] bytes) {
    return server.put(name, bytes);
  }

  @Override
  protected Location missing() {
    return server.missing("missing");
  }
}
