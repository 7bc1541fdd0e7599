// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.RangeServer.Answer;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
@Timeout(60)
@Tag("beside")
class HttpsAndProxyTest {
  private static final int LENGTH = 3_000_017;
  private static final byte[] BYTES = TestFiles.bytes(11, LENGTH);
  private static final char[] PASSWORD = "password".toCharArray();

  /// A self-signed certificate of `127.0.0.1` with its key.
  private static KeyStore key;

  private final SSLContext trustedBefore = defaultContext();
  private final ProxySelector proxiesBefore = ProxySelector.getDefault();
  private final RangeServer server = new RangeServer(context());
  private final Location file = server.put("weights.bin", BYTES);

  @BeforeAll
  static void makeCertificate(@TempDir Path folder) throws Exception {
    Path store = folder.resolve("key.p12");
    Process keytool =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-genkeypair",
                "-keyalg",
                "EC",
                "-alias",
                "server",
                "-dname",
                "CN=server",
                "-ext",
                "san=ip:127.0.0.1",
                "-storetype",
                "PKCS12",
                "-storepass",
                "password",
                "-keystore",
                store.toString())
            .redirectErrorStream(true)
            .start();
    String said = new String(keytool.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(keytool.waitFor()).as(said).isZero();
    key = KeyStore.getInstance("PKCS12");
    try (InputStream in = Files.newInputStream(store)) {
      key.load(in, PASSWORD);
    }
  }

  /// Returns the TLS context of the server, which also trusts the server's certificate.
  private static SSLContext context() {
    try {
      KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
      keys.init(key, PASSWORD);
      KeyStore trusted = KeyStore.getInstance("PKCS12");
      trusted.load(null, null);
      trusted.setCertificateEntry("server", key.getCertificate("server"));
      TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
      trust.init(trusted);
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
      return context;
    } catch (GeneralSecurityException | IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private static SSLContext defaultContext() {
    try {
      return SSLContext.getDefault();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  @AfterEach
  void close() {
    SSLContext.setDefault(trustedBefore);
    ProxySelector.setDefault(proxiesBefore);
    server.close();
  }

  private static HttpStore store() {
    return new HttpStore(new RetryLimits(2, Duration.ofMillis(10), Duration.ofSeconds(10)));
  }

  private static void load(Location from) {
    TransferOptions options =
        TransferOptions.defaults().withLimits(PlanLimits.DEFAULT.withRequestBytes(256 << 10));
    try (GantrySession session = GantrySession.open(Libc.INSTANCE, List.of(store()));
        Loaded loaded =
            session.load(
                List.of(new ExtentRequest(new Extent(from, 0, LENGTH), 1)), Device.HOST, options)) {
      assertThat(TestFiles.bytes(loaded.regions().getFirst())).isEqualTo(BYTES);
    }
  }

  private static void open(Location from) {
    try (HttpStore store = store()) {
      store.open(from, CachePolicy.BUFFERED).close();
    }
  }

  @Test
  void everyByteArrivesOverTls() {
    SSLContext.setDefault(context());
    load(file);
  }

  @Test
  void aTlsConnectionThatBreaksIsReplaced() {
    SSLContext.setDefault(context());
    server.answer(number -> number == 1 ? Answer.HALF : Answer.RIGHT);
    load(file);
  }

  @Test
  void aCertificateThatNobodySignedIsRefused() {
    assertThatThrownBy(() -> open(file))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("certification path");
    assertThat(server.requests()).isZero();
  }

  @Test
  void aCertificateOfAnotherNameIsRefused() {
    SSLContext.setDefault(context());
    assertThatThrownBy(
            () -> open(Location.of("https://localhost:" + server.port() + "/weights.bin")))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("localhost");
    assertThat(server.requests()).isZero();
  }

  private static void useProxy(int port) {
    InetSocketAddress proxy = InetSocketAddress.createUnresolved("127.0.0.1", port);
    ProxySelector.setDefault(ProxySelector.of(proxy));
  }

  /// The server answers every client, so it can act as the proxy.
  @Test
  void plainRequestsGoToTheProxy() {
    try (RangeServer proxy = new RangeServer()) {
      Location _ = proxy.put("weights.bin", BYTES);
      useProxy(proxy.port());
      load(Location.of("http://host.invalid/weights.bin"));
    }
  }

  @Test
  void tlsGoesThroughTheProxy() throws Exception {
    SSLContext.setDefault(context());
    try (Tunnel proxy = new Tunnel("200 Connection established", server.port())) {
      useProxy(proxy.port());
      load(file);
      assertThat(proxy.asked)
          .isNotEmpty()
          .allMatch("CONNECT 127.0.0.1:%d HTTP/1.1".formatted(server.port())::equals);
    }
  }

  @Test
  void aProxyThatRefusesIsNamed() throws Exception {
    try (Tunnel proxy = new Tunnel("407 Proxy Authentication Required", server.port())) {
      useProxy(proxy.port());
      assertThatThrownBy(() -> open(file))
          .hasMessageContaining("the proxy refuses the connection with status 407");
    }
  }

  /// A proxy that gives each `CONNECT` the same answer, and then passes all bytes on.
  private static final class Tunnel implements AutoCloseable {
    private final List<String> asked = Collections.synchronizedList(new ArrayList<>());
    private final ServerSocket door = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final String status;
    private final int target;

    Tunnel(String status, int target) throws IOException {
      this.status = status;
      this.target = target;
      Thread.ofVirtual().start(this::accept);
    }

    int port() {
      return door.getLocalPort();
    }

    private void accept() {
      try {
        while (true) {
          Socket client = door.accept();
          Thread.ofVirtual().start(() -> serve(client));
        }
      } catch (IOException _) {
        // The test has closed the socket.
      }
    }

    private void serve(Socket client) {
      try (client;
          Socket server = new Socket(InetAddress.getLoopbackAddress(), target)) {
        StringBuilder head = new StringBuilder();
        while (!head.toString().endsWith("\r\n\r\n")) {
          head.append((char) client.getInputStream().read());
        }
        asked.add(head.substring(0, head.indexOf("\r\n")));
        client
            .getOutputStream()
            .write(("HTTP/1.1 " + status + "\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
        Thread back = Thread.ofVirtual().start(() -> pass(server, client));
        pass(client, server);
        back.join();
      } catch (IOException _) {
        // One side has closed its connection.
      } catch (InterruptedException _) {
        Thread.currentThread().interrupt();
      }
    }

    private static void pass(Socket from, Socket to) {
      try {
        from.getInputStream().transferTo(to.getOutputStream());
        to.shutdownOutput();
      } catch (IOException _) {
        // One side has closed its connection.
      }
    }

    @Override
    public void close() throws IOException {
      door.close();
    }
  }
}
