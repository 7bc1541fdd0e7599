// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import com.adobe.testing.s3mock.S3MockApplication;
import dev.gantry.core.Location;
import dev.gantry.core.spi.Store;
import dev.gantry.s3.testing.S3Server;
import dev.gantry.testing.StoreContract;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;

/// Runs the store's contract on S3Mock, a server other than s3proxy.
class S3MockTest extends StoreContract {
  private static S3MockApplication mock;
  private static HttpClient http;

  private final S3Server settings = S3Server.inMemory();
  private final Store store = new S3Store();

  @BeforeAll
  static void start() throws IOException {
    mock =
        S3MockApplication.start(
            new HashMap<>(
                Map.of(
                    S3MockApplication.PROP_HTTP_PORT, S3MockApplication.RANDOM_PORT,
                    S3MockApplication.PROP_HTTPS_PORT, S3MockApplication.RANDOM_PORT,
                    S3MockApplication.PROP_SILENT, true)));
    http = HttpClient.newHttpClient();
    put("", new byte[0], "bucket");
  }

  @AfterAll
  static void stop() {
    http.close();
    mock.stop();
  }

  S3MockTest() {
    settings.pointAt(server());
  }

  @AfterEach
  void close() {
    store.close();
    settings.close();
  }

  /// Clients use HTTP, because they would not trust the server's certificate.
  @SuppressWarnings("deprecation")
  private static URI server() {
    return URI.create("http://127.0.0.1:" + mock.getHttpPort());
  }

  @Override
  protected Store store() {
    return store;
  }

  @Override
  protected Location put(String name, byte[] bytes) throws IOException {
    put("/" + name, bytes, "bucket");
    return S3Server.location(name);
  }

  private static void put(String key, byte[] bytes, String bucket) throws IOException {
    HttpRequest request =
        HttpRequest.newBuilder(server().resolve("/" + bucket + key))
            .PUT(HttpRequest.BodyPublishers.ofByteArray(bytes))
            .build();
    try {
      int status = http.send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
      if (status != 200) {
        throw new IOException("status " + status);
      }
    } catch (InterruptedException e) {
      throw new IOException(e);
    }
  }

  @Override
  protected Location missing() {
    return S3Server.location("missing");
  }
}
