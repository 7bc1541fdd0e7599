// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.Location;
import dev.gantry.core.spi.Store;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.StoreContract;

class MemoryStoreTest extends StoreContract {
  @Override
  protected Store store() {
    return new MemoryStore();
  }

  @Override
  protected Location put(String name, byte[] bytes) {
    return MemoryStore.put("contract/" + name, bytes);
  }

  @Override
  protected Location missing() {
    return Location.of("memory://contract/missing");
  }
}
