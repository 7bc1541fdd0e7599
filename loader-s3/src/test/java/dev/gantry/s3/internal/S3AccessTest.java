// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import software.amazon.awssdk.crt.CRT;
import software.amazon.awssdk.crt.CrtResource;
import software.amazon.awssdk.crt.CrtResource.ResourceInstance;

/// Tests the headers of requests to buckets that are open to all, and to buckets whose requesters
/// pay.
@ExtendWith(NoLeaks.class)
class S3AccessTest {
  private static final byte[] OBJECT = "bytes of an object".getBytes(StandardCharsets.UTF_8);
  private static final Location FILE = Location.of("s3://bucket/object");

  private final List<Headers> asked = new CopyOnWriteArrayList<>();
  private final Map<String, String> before = new LinkedHashMap<>();
  private HttpServer server;

  /// The region in which the server says that the bucket is; empty if the server accepts the
  /// client's region.
  private volatile String region = "";

  private volatile boolean tagged = true;

  /// The entry that the server's list of the folder has, as XML.
  private volatile String entry = "<Key>folder/a</Key><Size>3</Size>";

  @BeforeEach
  void start() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext("/", this::answer);
    server.start();
    set("aws.endpointUrlS3", "http://127.0.0.1:" + server.getAddress().getPort());
    set("aws.region", "us-east-1");
  }

  @AfterEach
  void stop() {
    server.stop(0);
    before.forEach((name, value) -> {
      if (value == null) {
        System.clearProperty(name);
      } else {
        System.setProperty(name, value);
      }
    });
  }

  private void set(String name, String value) {
    String old = System.setProperty(name, value);
    if (!before.containsKey(name)) {
      before.put(name, old);
    }
  }

  private void answer(HttpExchange exchange) throws IOException {
    try (exchange) {
      asked.add(exchange.getRequestHeaders());
      Headers headers = exchange.getResponseHeaders();
      if (!region.isEmpty()) {
        headers.set("x-amz-bucket-region", region);
        exchange.sendResponseHeaders(301, -1);
        return;
      }
      if (exchange.getRequestURI().getPath().equals("/bucket")
          || exchange.getRequestURI().getPath().equals("/bucket/")) {
        byte[] list =
            ("<ListBucketResult><Name>bucket</Name><KeyCount>1</KeyCount><Contents>"
                    + entry
                    + "</Contents></ListBucketResult>")
                .getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, list.length);
        exchange.getResponseBody().write(list);
        return;
      }
      if (tagged) {
        headers.set("ETag", "\"tag\"");
      }
      headers.set("Last-Modified", "Tue, 24 Nov 2026 00:00:00 GMT");
      if (exchange.getRequestMethod().equals("HEAD")) {
        headers.set("Content-Length", String.valueOf(OBJECT.length));
        exchange.sendResponseHeaders(200, -1);
        return;
      }
      headers.set("Content-Range", "bytes 0-%d/%d".formatted(OBJECT.length - 1, OBJECT.length));
      exchange.sendResponseHeaders(206, OBJECT.length);
      exchange.getResponseBody().write(OBJECT);
    }
  }

  /// Reads the object, and lists a folder.
  private void list() {
    try (S3Store store = new S3Store()) {
      var _ = store.list(Location.of("s3://bucket/folder"));
    }
  }

  private void read() {
    try (S3Store store = new S3Store();
        Arena arena = Arena.ofShared()) {
      try (SourceFile file = new SourceFile(FILE, store.open(FILE, CachePolicy.BUFFERED))) {
        MemorySegment target = arena.allocate(OBJECT.length);
        boolean _ = file.read(target, 0, OBJECT.length, false);
        assertThat(target.mismatch(MemorySegment.ofArray(OBJECT))).isEqualTo(-1);
      }
      assertThat(store.list(Location.of("s3://bucket/folder")).orElseThrow())
          .containsExactly(Location.of("s3://bucket/folder/a"));
    }
    assertThat(asked).hasSizeGreaterThanOrEqualTo(3);
  }

  @Test
  void anonymousRequestsNeedNoKeysAndHaveNoSignature() {
    set("gantry.s3.anonymous", "True");
    read();
    assertThat(asked).noneMatch(headers -> headers.containsKey("Authorization"));
    assertThat(asked).noneMatch(headers -> headers.containsKey("x-amz-request-payer"));
  }

  @Test
  void whoPaysIsSaidAndSignedInEachRequest() {
    set("aws.accessKeyId", "user");
    set("aws.secretAccessKey", "secret");
    set("aws.sessionToken", "token");
    set("gantry.s3.requester-pays", "true");
    read();
    assertThat(asked)
        .allSatisfy(headers -> {
          // Credentials for a limited time are refused without it.
          assertThat(headers.getFirst("x-amz-security-token")).isEqualTo("token");
          assertThat(headers.getFirst("x-amz-request-payer")).isEqualTo("requester");
          assertThat(headers.getFirst("Authorization")).contains("x-amz-request-payer");
        });
  }

  @Test
  void aBucketOfAnotherRegionIsNamedWithIt() {
    set("gantry.s3.anonymous", "true");
    region = "eu-south-2";
    assertThatThrownBy(this::read)
        .hasMessageContaining("the bucket is in region eu-south-2: set AWS_REGION=eu-south-2");
    // The server is not trusted to name something else.
    region = "no region";
    assertThatThrownBy(this::read)
        .hasMessageEndingWith("the bucket is in another region: set AWS_REGION");
  }

  @Test
  void anObjectWithoutAVersionIsRefused() {
    set("gantry.s3.anonymous", "true");
    tagged = false;
    assertThatThrownBy(this::read)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("the server sends no ETag or no length");
  }

  /// Returns the objects of the CRT's C code that this process holds, which the CRT lists for
  /// `-Daws.crt.debugnative=true`.
  private static Set<ResourceInstance> ofCrt() {
    Set<ResourceInstance> held = Collections.newSetFromMap(new IdentityHashMap<>());
    CrtResource.collectNativeResource(held::add);
    return held;
  }

  /// The CRT frees none of its memory and connections by itself.
  @Test
  void aClosedStoreFreesWhatTheCrtHeldForIt() {
    set("gantry.s3.anonymous", "true");
    // The first store makes what the process keeps.
    read();
    Set<ResourceInstance> before = ofCrt();
    assertThat(before).isNotEmpty();
    read();
    set("gantry.s3.path-style", "perhaps");
    assertThatThrownBy(this::read).isInstanceOf(MisuseException.class);
    set("gantry.s3.path-style", "true");
    set("gantry.s3.requester-pays", "perhaps");
    assertThatThrownBy(this::read).isInstanceOf(MisuseException.class);
    Latches.awaitThat(() -> before.containsAll(ofCrt()));
  }

  /// The server is not trusted.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "<Key>other/a</Key><Size>3</Size>",
        "<Size>3</Size>",
        "<Key>folder/a</Key>",
        "<Key>folder/a</Key><Size>-3</Size>"
      })
  void anEntryOfAListLiesInTheFolderAndHasASize(String told) {
    set("gantry.s3.anonymous", "true");
    entry = told;
    assertThatThrownBy(this::read)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("has an entry that lacks a part, or lies elsewhere");
  }

  /// Hides the settings that the machine of the test may have for the SDK.
  private void withoutSettings() {
    set("aws.disableEc2Metadata", "true");
    set("aws.configFile", "none");
    set("aws.sharedCredentialsFile", "none");
    assumeThat(System.getenv()).doesNotContainKeys("AWS_REGION", "AWS_ACCESS_KEY_ID");
  }

  @Test
  void aMissingRegionIsNamedWithItsSetting() {
    withoutSettings();
    set("gantry.s3.anonymous", "true");
    System.clearProperty("aws.region");
    assertThatThrownBy(this::read)
        .isInstanceOf(TransferException.class)
        .hasMessageEndingWith("no region: set AWS_REGION");
  }

  @Test
  void aWrongRegionIsNamedWithItsSetting() {
    set("gantry.s3.anonymous", "true");
    set("aws.region", "no region");
    assertThatThrownBy(this::read)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("AWS_REGION or the profile's region must name a region");
  }

  @Test
  void missingCredentialsAreNamedWithTheirSettingsAndTheProfile() {
    withoutSettings();
    set("aws.profile", "nobody");
    assertThatThrownBy(this::read)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        .hasMessageEndingWith("; the profile nobody has none, or does not exist");
  }

  @Test
  void aServerThatIsNotReachedIsNamedWithItsAddress() {
    set("gantry.s3.anonymous", "true");
    server.stop(0);
    assertThatThrownBy(this::read)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining(System.getProperty("aws.endpointUrlS3") + " was not reached: ")
        .hasMessageNotContaining("Attempt");
  }

  @Test
  void aServerThatFailsIsNotSaidToBeUnreachable() {
    set("gantry.s3.anonymous", "true");
    server.removeContext("/");
    server.createContext(
        "/",
        exchange -> {
          exchange.sendResponseHeaders(500, -1);
          exchange.close();
        });
    assertThatThrownBy(this::read)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("failed: ")
        .hasMessageNotContaining("was not reached");
    assertThatThrownBy(this::list)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining(System.getProperty("aws.endpointUrlS3") + " failed: ");
  }

  /// The JVM's shutdown hooks run at the same time, so hooks of other programs use the store after the CRT's
  /// hook has run.
  @Test
  void anOpenStoreAnswersAndIsClosedWhileTheJvmEnds() {
    List<String> options =
        List.of(
            "-Xmx64m",
            "-Daws.endpointUrlS3=" + System.getProperty("aws.endpointUrlS3"),
            "-Daws.region=us-east-1",
            "-Dgantry.s3.anonymous=true");
    assertThat(ChildJvm.run(options, Map.of(), AfterTheHookOfTheCrt.class).requirePassed())
        .isEqualTo("[s3://bucket/folder/a]\n");
  }

  static final class AfterTheHookOfTheCrt {
    private AfterTheHookOfTheCrt() {}

    static void main() {
      Location folder = Location.of("s3://bucket/folder");
      try (S3Store store = new S3Store()) {
        List<Location> _ = store.list(folder).orElseThrow();
        // The CRT's shutdown hook does just this.
        CRT.releaseShutdownRef();
        System.out.println(store.list(folder).orElseThrow());
      }
      System.out.flush();
      // The hook must not release the CRT again.
      Runtime.getRuntime().halt(0);
    }
  }

  @Test
  void aClosedStoreOpensNothing() {
    set("gantry.s3.anonymous", "true");
    S3Store store = new S3Store();
    store.close();
    assertThatThrownBy(() -> store.open(FILE, CachePolicy.BUFFERED))
        .isInstanceOf(MisuseException.class)
        .hasMessage("this session is closed");
    assertThat(asked).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"localhost:9000", "minio", "ftp://localhost", "http://my_minio:9000"})
  void aServersAddressIsOneOfHttpWithAHost(String address) {
    set("gantry.s3.anonymous", "true");
    set("aws.endpointUrlS3", address);
    assertThatThrownBy(this::read)
        .isInstanceOf(MisuseException.class)
        .hasMessageStartingWith(
            "AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_S3 or the profile's endpoint_url must be an http or"
                + " https address with a host's name, such as http://localhost:9000: ");
  }

  @Test
  void aSettingIsTrueOrFalse() {
    set("gantry.s3.anonymous", "perhaps");
    assertThatThrownBy(this::read)
        .isInstanceOf(MisuseException.class)
        .hasMessage("gantry.s3.anonymous must be true or false (was perhaps)");
  }

  @ParameterizedTest
  @CsvSource({
    "https://bucket.s3.amazonaws.com/key, false",
    "https://bucket.s3.cn-north-1.amazonaws.com.cn/key, false",
    "https://storage.example/bucket/key, true"
  })
  void onlyTheHostsOfAwsHaveTheBucketInTheirNames(URI object, boolean inPath) {
    assertThat(S3Settings.pathStyle(object)).isEqualTo(inPath);
  }

  @Test
  void anInterruptionCancelsTheRequestAndStaysNoted() {
    set("gantry.s3.anonymous", "true");
    CompletableFuture<Object> answer = new CompletableFuture<>();
    try (S3Clients clients = S3Clients.open(S3Settings.DEFAULT)) {
      Thread.currentThread().interrupt();
      assertThatThrownBy(() -> clients.await("HEAD", FILE, () -> answer))
          .isInstanceOfSatisfying(
              TransferException.class,
              e -> assertThat(e.failure()).isEqualTo(new Failure.Cancelled()));
      assertThat(Thread.interrupted()).isTrue();
    }
    assertThat(answer).isCancelled();
  }
}
