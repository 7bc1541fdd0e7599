// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpExchange;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.http.HttpStore;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.testing.RangeServer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class GcsStoreTest extends ObjectStoreContract {
  private static final String TOKEN = "ya29.a-token";

  GcsStoreTest() {
    super("gs");
  }

  @Override
  Map<String, String> settings() {
    return Map.of("STORAGE_EMULATOR_HOST", endpoint(), "CLOUDSDK_AUTH_ACCESS_TOKEN", TOKEN);
  }

  @Override
  Store make(Map<String, String> settings) {
    return new GcsStore(settings::get);
  }

  @Override
  String root() {
    return BUCKET;
  }

  @Override
  boolean isAllowed(HttpExchange exchange) {
    return ("Bearer " + TOKEN).equals(exchange.getRequestHeaders().getFirst("Authorization"));
  }

  @Override
  String from() {
    return "continuation-token";
  }

  @Override
  String listing(List<String> keys, @Nullable String next) {
    return """
    <?xml version='1.0' encoding='UTF-8'?><ListBucketResult><Name>a-bucket</Name>
    <IsTruncated>true</IsTruncated>%s<Prefix>a folder/</Prefix>%s
    <CommonPrefixes><Prefix>a folder/within/</Prefix></CommonPrefixes></ListBucketResult>
    """
        .formatted(
            next == null
                ? ""
                : "<NextContinuationToken>"
                    + next.replace("&", "&amp;")
                    + "</NextContinuationToken>",
            elements(keys, "<Contents><Key>", "</Key><Size>1</Size></Contents>"));
  }

  @Test
  void aRefusalSaysWhatToDoAndNoSecret() {
    Location file = put("private", new byte[3]);
    Store nobody = opened(Map.of("STORAGE_EMULATOR_HOST", endpoint()));
    assertThatThrownBy(() -> nobody.open(file, CachePolicy.BUFFERED))
        .hasMessageContaining("status 403")
        .hasMessageContaining("this is not open to all: set CLOUDSDK_AUTH_ACCESS_TOKEN");
    assertThatThrownBy(() -> nobody.list(file)).hasMessageContaining("this is not open to all");
    Store another =
        opened(
            Map.of("STORAGE_EMULATOR_HOST", endpoint(), "CLOUDSDK_AUTH_ACCESS_TOKEN", "another"));
    assertThatThrownBy(() -> another.open(file, CachePolicy.BUFFERED))
        .hasMessageContaining("the token's account may not read this")
        .hasMessageNotContaining("another");
    assertThatThrownBy(() -> store().open(missing(), CachePolicy.BUFFERED))
        .hasMessageContaining("there is no such object or bucket");
  }

  @Test
  void theProjectThatPaysIsNamed() {
    Location file = put("paid", new byte[3]);
    Map<String, String> settings = new HashMap<>(settings());
    settings.put("GOOGLE_CLOUD_QUOTA_PROJECT", "my-project");
    server.before(exchange -> {
      assertThat(exchange.getRequestHeaders().getFirst("x-goog-user-project"))
          .isEqualTo("my-project");
      return false;
    });
    try (StoredFile opened = opened(settings).open(file, CachePolicy.BUFFERED)) {
      assertThat(opened.size()).isEqualTo(3);
    }
  }

  @Test
  void settingsThatAreWrongAreNamed() {
    assertMisuse(
        Map.of("STORAGE_EMULATOR_HOST", "ftp://there"),
        "STORAGE_EMULATOR_HOST must be an http or https address (was ftp://there)");
    assertMisuse(
        Map.of("STORAGE_EMULATOR_HOST", "localhost:65536"),
        "STORAGE_EMULATOR_HOST must be an http or https address (was http://localhost:65536)");
    assertMisuse(
        Map.of("STORAGE_EMULATOR_HOST", endpoint(), "GANTRY_GCS_ANONYMOUS", "yes"),
        "GANTRY_GCS_ANONYMOUS must be true or false (was yes)");
    assertMisuse(
        Map.of("STORAGE_EMULATOR_HOST", endpoint(), "GOOGLE_CLOUD_QUOTA_PROJECT", "two\nlines"),
        "GOOGLE_CLOUD_QUOTA_PROJECT must have one word of ASCII characters, the project");
  }

  private void assertMisuse(Map<String, String> settings, String message) {
    Store wrong = opened(settings);
    assertThatThrownBy(() -> wrong.open(missing(), CachePolicy.BUFFERED))
        .isInstanceOf(MisuseException.class)
        .hasMessage(message);
  }

  /// The test's server plays the metadata server of Google's machines, and gives tokens only.
  @Test
  void aMachineOfGooglesHasItsOwnToken() throws Exception {
    AtomicInteger asked = new AtomicInteger();
    try (RangeServer metadata = new RangeServer();
        HttpStore http = new HttpStore()) {
      metadata.before(exchange -> {
        boolean right =
            exchange.getRequestURI().getPath().endsWith("/service-accounts/default/token")
                && "Google".equals(exchange.getRequestHeaders().getFirst("Metadata-Flavor"));
        // The first token expires too soon to be used a second time.
        int number = asked.incrementAndGet();
        byte[] answer =
            "{\"access_token\": \"t%d\", \"expires_in\": %d, \"token_type\": \"Bearer\"}"
                .formatted(number, number == 1 ? 60 : 3600)
                .getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(right ? 200 : 404, answer.length);
        exchange.getResponseBody().write(answer);
        return true;
      });
      GcsService service =
          new GcsService(Map.of("GCE_METADATA_HOST", "127.0.0.1:" + metadata.port())::get, http);
      for (String token : List.of("t1", "t2", "t2")) {
        assertThat(service.of("GET", service.address(new ObjectName(BUCKET, "k")), ""))
            .containsEntry("Authorization", "Bearer " + token);
      }
      assertThat(asked).hasValue(2);
    }
  }
}
