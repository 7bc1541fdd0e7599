// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.spi.Store;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.StoreContract;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

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

  /// The HTTP clients of a file that is opened later would never be closed.
  @Test
  void aStoreThatWasClosedOpensNothing() {
    Location file = put("closed", new byte[3]);
    store.close();
    assertThatThrownBy(() -> store.open(file, CachePolicy.BUFFERED))
        .isInstanceOf(MisuseException.class)
        .hasMessage("this session is closed");
  }
}
