// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.spi.Store;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.StoreContract;
import java.net.URI;
import java.net.http.HttpHeaders;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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

  @ParameterizedTest
  @CsvSource({
    "https://a/x, http://a/y, false",
    "https://a/x, https://b/y, true",
    "http://a/x, http://b/y, true",
    "http://a/x, https://a/y, true",
    "http://a/x, ftp://a/y, false",
    "http://a/x, http:/y, false",
    "http://a/x, http://a:65536/y, false"
  })
  void noRedirectLeavesTlsOrHttp(String from, String to, boolean followed) {
    HttpHeaders headers = HttpHeaders.of(Map.of("Location", List.of(to)), (_, _) -> true);
    assertThat(Redirects.target(URI.create(from), 302, headers).map(URI::toString))
        .isEqualTo(followed ? Optional.of(to) : Optional.empty());
  }

  /// A token is sent to the server to which it belongs.
  @ParameterizedTest
  @CsvSource({
    "https://a/x, https://A/y, true",
    "https://a/x, http://a/x, false",
    "https://a/x, https://b/x, false",
    "https://a/x, https://a:8443/x, false"
  })
  void aServerIsItsSchemeItsHostAndItsPort(String one, String other, boolean same) {
    assertThat(Redirects.isSameServer(URI.create(one), URI.create(other))).isEqualTo(same);
  }
}
