// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpExchange;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.StoreContract;
import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// The rules for both object stores, with a server on the loopback that refuses requests without
/// the right header.
abstract class ObjectStoreContract extends StoreContract {
  static final String BUCKET = "a-bucket";

  /// The number of names on one page of a listing.
  private static final int PAGE = 2;

  private final String scheme;
  final RangeServer server = new RangeServer();
  private final List<Store> stores = new ArrayList<>();
  private Store store;

  ObjectStoreContract(String scheme) {
    this.scheme = scheme;
  }

  /// Returns the settings of a user who may read everything.
  abstract Map<String, String> settings();

  /// Opens a store with these settings; the test closes it.
  abstract Store make(Map<String, String> settings);

  /// Returns the path of the bucket at the server, without a leading or trailing slash.
  abstract String root();

  /// Returns whether the server allows a request.
  abstract boolean isAllowed(HttpExchange exchange);

  /// Returns the body of an answer that lists names.
  ///
  /// @param next the name at which the next page begins; null after the last page
  abstract String listing(List<String> keys, @Nullable String next);

  /// Returns the name of the request parameter for the page's beginning.
  abstract String from();

  final Store opened(Map<String, String> settings) {
    stores.add(make(settings));
    return stores.getLast();
  }

  String endpoint() {
    return "http://127.0.0.1:" + server.port();
  }

  @BeforeEach
  void open() {
    store = opened(settings());
    server.before(this::answers);
  }

  @AfterEach
  void close() {
    stores.forEach(Store::close);
    server.close();
  }

  private boolean answers(HttpExchange exchange) throws IOException {
    if (!isAllowed(exchange)) {
      exchange.sendResponseHeaders(403, -1);
      return true;
    }
    Map<String, String> query = query(exchange);
    if (!query.containsKey("prefix")) {
      return false;
    }
    assertThat(query).containsEntry("delimiter", "/");
    String root = root() + "/";
    List<String> keys =
        server.names(root + query.get("prefix")).stream()
            .map(name -> name.substring(root.length()))
            .filter(key -> key.indexOf('/', query.getOrDefault("prefix", "").length()) < 0)
            .toList();
    int begin = Integer.parseInt(query.getOrDefault(from(), "&0").substring(1));
    int end = Math.min(begin + PAGE, keys.size());
    byte[] body =
        listing(keys.subList(begin, end), end < keys.size() ? "&" + end : null)
            .getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(200, body.length);
    exchange.getResponseBody().write(body);
    return true;
  }

  static Map<String, String> query(HttpExchange exchange) {
    Map<String, String> query = new HashMap<>();
    String text = exchange.getRequestURI().getRawQuery();
    for (String part : text == null ? new String[0] : text.split("&", -1)) {
      String[] sides = part.split("=", 2);
      query.put(sides[0], URLDecoder.decode(sides[1], StandardCharsets.UTF_8));
    }
    return query;
  }

  /// Returns each name as XML between two tags.
  static String elements(List<String> texts, String before, String after) {
    return texts.stream()
        .map(text -> before + text.replace("&", "&amp;").replace("<", "&#x3C;") + after)
        .collect(Collectors.joining("\n"));
  }

  @Override
  protected Store store() {
    return store;
  }

  @Override
  protected Location put(String name, byte[] bytes) {
    Location _ = server.put(root() + "/a folder/" + name, bytes);
    return Location.of(scheme + "://" + BUCKET + "/a%20folder/" + name);
  }

  @Override
  protected Location missing() {
    return Location.of(scheme + "://" + BUCKET + "/missing");
  }

  @Test
  void aFolderListsItsFilesOfAllPages() {
    List<String> names = List.of("a&b", "index.json", "one", "three", "two");
    for (String name : names) {
      Location _ = server.put(root() + "/a folder/" + name, new byte[1]);
    }
    Location _ = server.put(root() + "/a folder/within/four", new byte[1]);
    Location _ = server.put(root() + "/a folder 2/five", new byte[1]);
    for (String slash : List.of("", "/")) {
      Location folder = Location.of(scheme + "://" + BUCKET + "/a%20folder" + slash);
      assertThat(store.list(folder).orElseThrow())
          .extracting(file -> ((Location.Remote) file).uri().getPath())
          .containsExactlyElementsOf(names.stream().map(name -> "/a folder/" + name).toList());
    }
    assertThat(store.list(Location.of(scheme + "://" + BUCKET + "/none")).orElseThrow()).isEmpty();
    try (StoredFile file =
        store.open(
            store
                .list(Location.of(scheme + "://" + BUCKET + "/a%20folder"))
                .orElseThrow()
                .getFirst(),
            CachePolicy.BUFFERED)) {
      assertThat(file.size()).isEqualTo(1);
    }
  }

  @Test
  void aListThatIsInterruptedLeavesTheThreadInterrupted() {
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> store.list(missing()))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining(", on an interrupted thread: cancelled");
    assertThat(Thread.interrupted()).isTrue();
  }

  /// The server that the redirect names must not get the credentials.
  @Test
  void noSecretGoesWithARedirect() {
    try (RangeServer other = new RangeServer()) {
      Location _ = other.put("elsewhere", new byte[] {1, 2, 3});
      Location file = put("elsewhere", new byte[] {1, 2, 3});
      List<String> told = new ArrayList<>();
      other.before(exchange -> {
        exchange.getRequestHeaders().forEach((name, _) -> told.add(name));
        told.add(String.valueOf(exchange.getRequestURI().getRawQuery()));
        return false;
      });
      server.before(exchange -> {
        exchange
            .getResponseHeaders()
            .set("Location", "http://127.0.0.1:" + other.port() + "/elsewhere");
        exchange.sendResponseHeaders(302, -1);
        return true;
      });
      try (StoredFile opened = store.open(file, CachePolicy.BUFFERED)) {
        assertThat(opened.size()).isEqualTo(3);
      }
      assertThat(told)
          .contains("null")
          .noneMatch(name -> name.toLowerCase(Locale.ROOT).matches("authorization|x-.*"));
    }
  }

  @Test
  void aStoreThatWasClosedOpensNothing() {
    Location file = put("closed", new byte[3]);
    store.close();
    assertThatThrownBy(() -> store.open(file, CachePolicy.BUFFERED))
        .isInstanceOf(MisuseException.class)
        .hasMessage("this session is closed");
  }

  @Test
  void aNameWithAQueryIsRefused() {
    assertThatThrownBy(() -> store.open(Location.of(scheme + "://b/k?x=1"), CachePolicy.BUFFERED))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("must be " + scheme + "://bucket/key without ? and #");
  }
}
