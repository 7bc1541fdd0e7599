// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.Location;
import dev.gantry.core.spi.Store;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.StoreContract;
import org.junit.jupiter.api.AfterEach;

class HttpStoreTest extends StoreContract {
  private final RangeServer server = new RangeServer();
  private final Store store = new HttpStore();

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
