// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.Location;
import dev.gantry.core.spi.Store;
import dev.gantry.testing.HubServer;
import dev.gantry.testing.StoreContract;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/// Files whose blocks are fetched when they are read.
class HubStoreTest extends StoreContract {
  private static final String REPOSITORY = "owner/a.model_1";

  private final HubServer server = new HubServer(1000);
  @TempDir private Path folder;
  private Store store;

  @BeforeEach
  void open() {
    server.put(REPOSITORY, "first", new byte[1]);
    store =
        HubStore.with(
            Map.of("HF_ENDPOINT", server.endpoint(), "HF_HUB_CACHE", folder.toString()),
            smallBytes());
  }

  long smallBytes() {
    return 0;
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
    server.put(REPOSITORY, "a folder/" + name, bytes);
    return Location.of("hf://" + REPOSITORY + "/a%20folder/" + name);
  }

  @Override
  protected Location missing() {
    return Location.of("hf://" + REPOSITORY + "/missing");
  }
}
