// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Location;
import dev.gantry.core.spi.Store;
import dev.gantry.s3.testing.S3Server;
import dev.gantry.testing.StoreContract;
import org.junit.jupiter.api.AfterEach;

class S3StoreTest extends StoreContract {
  private final S3Server server = S3Server.inMemory();
  private final Store store = new S3Store();

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
    return S3Server.location("missing");
  }
}
