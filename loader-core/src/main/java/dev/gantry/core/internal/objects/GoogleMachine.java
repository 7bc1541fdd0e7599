// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.gantry.core.internal.http.HttpCalls;
import dev.gantry.core.internal.http.HttpStore;
import dev.gantry.core.internal.http.ServiceAddress;
import dev.gantry.core.internal.store.Variables;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.URI;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Gets the tokens of a machine or container in Google's cloud from its metadata server. A token
/// is valid for about an hour. Outside Google's cloud there is no such server. Thread-safe.
final class GoogleMachine {
  private static final String PATH = "/computeMetadata/v1/instance/service-accounts/default/token";
  private static final JsonFactory JSON = new JsonFactory();
  private static final Duration LIMIT = Duration.ofSeconds(3);

  /// The server gives a new token when the old one is valid for less than 5 minutes.
  private static final long RENEWED_NANOS = TimeUnit.MINUTES.toNanos(4);

  private static final int MAX_ANSWER_BYTES = 64 << 10;

  private final URI address;
  private final HttpCalls calls;
  private boolean asked;
  private Optional<String> token = Optional.empty();
  private long expiresNanos;

  /// @throws dev.gantry.core.MisuseException if `GCE_METADATA_HOST` does not name a host
  GoogleMachine(Function<String, @Nullable String> variables, HttpStore http) {
    String setting = "GCE_METADATA_HOST";
    String host = Variables.given(variables, setting).orElse("metadata.google.internal");
    address = URI.create(ServiceAddress.of(setting, "http://" + host) + PATH);
    calls = new HttpCalls(http, (_, _, _) -> Map.of("Metadata-Flavor", "Google"), _ -> false);
  }

  /// Whether the metadata server gave a token when it was last asked.
  synchronized boolean isThere() {
    return token.isPresent();
  }

  /// Returns a token; empty if there is no metadata server, or the machine has no account.
  ///
  /// @throws IOException if a server that gave a token gives none any more
  synchronized Optional<String> token() throws IOException {
    if (!asked) {
      asked = true;
      try {
        ask(false);
      } catch (IOException _) {
        // This machine is not in Google's cloud.
      }
    } else if (token.isPresent() && expiresNanos - System.nanoTime() < RENEWED_NANOS) {
      ask(true);
    }
    return token;
  }

  private void ask(boolean patient) throws IOException {
    HttpResponse<String> answer;
    try {
      answer =
          calls.send(
              "GET",
              address,
              BodyHandlers.limiting(BodyHandlers.ofString(), MAX_ANSWER_BYTES),
              LIMIT,
              patient);
    } catch (InterruptedException _) {
      asked = token.isPresent();
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted while waiting for a token");
    }
    if (answer.statusCode() != 200) {
      throw new IOException(
          "the metadata server answered with status "
              + answer.statusCode()
              + " instead of a token");
    }
    read(answer.body());
  }

  private void read(String answer) throws IOException {
    String found = "";
    long seconds = 0;
    try (JsonParser json = JSON.createParser(answer)) {
      if (json.nextToken() != JsonToken.START_OBJECT) {
        throw new IOException("the metadata server sent no token");
      }
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        String name = json.currentName();
        JsonToken value = json.nextToken();
        if (name.equals("access_token") && value == JsonToken.VALUE_STRING) {
          found = json.getText();
        } else if (name.equals("expires_in") && value == JsonToken.VALUE_NUMBER_INT) {
          seconds = json.getLongValue();
        }
        json.skipChildren();
      }
    }
    token = Optional.of(found).filter(text -> !text.isEmpty());
    expiresNanos = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
  }
}
