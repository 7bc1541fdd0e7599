// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import software.amazon.awssdk.crt.http.HttpRequestBodyStream;

/// Tests uploads in parts to a server whose lists and last answers the test chooses.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class UnfinishedUploadTest {
  private static final int PART = 5 << 20;

  /// The size of a file of two parts, the second of which is one byte.
  private static final int BYTES = PART + 1;

  /// The MD5 of a byte that is zero.
  private static final String MD5_OF_ZERO = "93b885adfe0da089cdf634904fd59f71";

  private static final String MD5_OF_PART_ONE = "5f363e0e58a95f06cbe9bbc662c5dfb6";

  /// The ETag that S3 gives the file.
  private static final String ETAG = "92f3a08aa3b1d7eb318ab9c2fc4a6ec3-2";

  private static final String PART_TWO =
      "<PartNumber>2</PartNumber><ETag>" + MD5_OF_ZERO + "</ETag><Size>1</Size>";

  private static final Location OBJECT = Location.of("s3://bucket/model");

  @TempDir private Path folder;
  private final Map<String, String> before = new LinkedHashMap<>();
  private final List<String> asked = new CopyOnWriteArrayList<>();
  private final AtomicInteger failing = new AtomicInteger();
  private HttpServer server;
  private S3Store store;

  /// The unfinished uploads that the server lists, as XML.
  private volatile String uploads = "";

  /// The further pages of that list, by the upload that the page before ended with.
  private final Map<String, String> pages = new ConcurrentHashMap<>();

  /// The part that the server lists for each upload.
  private volatile String part = PART_TWO;

  private volatile int statusOfParts = 200;
  private volatile int statusOfAbort = 204;
  private volatile String answerOfPart = "";
  private volatile Runnable whenBegun = () -> {};
  private volatile int statusOfEnd = 200;
  private volatile String answerOfEnd = "";

  /// The body of the request that ends an upload.
  private volatile String end = "";

  private volatile String etagOfPart = "sent";

  /// The object at the last request of an upload, and after it.
  private volatile int statusBefore = 200;

  private volatile String etagBefore = "before";
  private volatile String etagAfter = "after";

  private volatile long sizeThere = BYTES;
  private volatile String begun = "<UploadId>fresh</UploadId>";

  @BeforeEach
  void start() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext("/", this::answer);
    server.start();
    set("aws.endpointUrlS3", "http://127.0.0.1:" + server.getAddress().getPort());
    set("aws.region", "us-east-1");
    set("gantry.s3.anonymous", "true");
    store =
        new S3Store(
            new S3Settings(new RetryLimits(3, Duration.ofMillis(10), Duration.ofSeconds(20))));
  }

  @AfterEach
  void stop() {
    store.close();
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
    try (exchange;
        InputStream body = exchange.getRequestBody()) {
      String query = String.valueOf(exchange.getRequestURI().getQuery());
      String request = exchange.getRequestMethod() + " " + query;
      byte[] received = body.readAllBytes();
      asked.add(request);
      if (failing.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
        send(exchange, 500, "");
      } else if (request.startsWith("HEAD")) {
        exchange.getResponseHeaders().set("Content-Length", String.valueOf(sizeThere));
        exchange
            .getResponseHeaders()
            .set("ETag", "\"" + (end.isEmpty() ? etagBefore : etagAfter) + "\"");
        exchange.sendResponseHeaders(end.isEmpty() ? statusBefore : 200, -1);
      } else if (request.startsWith("GET") && query.contains("uploadId=")) {
        send(
            exchange,
            statusOfParts,
            "<ListPartsResult><Part>" + part + "</Part></ListPartsResult>");
      } else if (request.startsWith("GET")) {
        send(
            exchange,
            200,
            "<ListMultipartUploadsResult>"
                + pages.getOrDefault(
                    query.replaceFirst(".*upload-id-marker=(\\w*).*", "$1"), uploads)
                + "</ListMultipartUploadsResult>");
      } else if (request.startsWith("POST uploads")) {
        whenBegun.run();
        send(exchange, 200, begun);
      } else if (request.startsWith("POST")) {
        end = new String(received, StandardCharsets.UTF_8);
        send(exchange, statusOfEnd, answerOfEnd);
      } else if (request.startsWith("DELETE")) {
        send(exchange, statusOfAbort, "");
      } else {
        exchange.getResponseHeaders().set("ETag", "\"" + etagOfPart + "\"");
        send(exchange, 200, answerOfPart);
      }
    }
  }

  private static void send(HttpExchange exchange, int status, String text) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(status, bytes.length == 0 ? -1 : bytes.length);
    exchange.getResponseBody().write(bytes);
  }

  private void upload() throws IOException {
    upload(BYTES);
  }

  private void upload(int bytes) throws IOException {
    store.upload(Files.write(folder.resolve("model"), new byte[bytes]), OBJECT);
  }

  private static String unfinished(String key, String id, String begun) {
    return "<Upload><Key>%s</Key><UploadId>%s</UploadId><Initiated>%s</Initiated></Upload>"
        .formatted(key, id, begun);
  }

  @Test
  void theLatestUploadGoesOn() throws IOException {
    uploads =
        unfinished("model", "early", "2026-01-01T00:00:00.000Z")
            + unfinished("model", "late", "2026-02-01T00:00:00.000Z")
            + unfinished("model", "middle", "2026-01-15T00:00:00.000Z");
    upload();
    assertThat(asked)
        .contains("PUT partNumber=1&uploadId=late", "POST uploadId=late", "DELETE uploadId=fresh")
        .noneMatch(request -> request.contains("early") || request.contains("middle"))
        .anyMatch(request -> request.startsWith("GET") && request.contains("prefix=model"));
  }

  @Test
  void uploadsOfOneObjectMayFillSeveralPages() throws IOException {
    String next =
        "<IsTruncated>true</IsTruncated><NextKeyMarker>model</NextKeyMarker>"
            + "<NextUploadIdMarker>%s</NextUploadIdMarker>";
    uploads = unfinished("model", "first", "2026-01-01T00:00:00.000Z") + next.formatted("first");
    pages.put(
        "first",
        unfinished("model", "second", "2026-01-02T00:00:00.000Z") + next.formatted("second"));
    pages.put("second", unfinished("model", "third", "2026-01-03T00:00:00.000Z"));
    upload();
    assertThat(asked).contains("POST uploadId=third");
  }

  @Test
  void anUploadOfAnObjectWhoseNameOnlyBeginsSoIsLeftAlone() throws IOException {
    uploads = unfinished("model.index", "other", "2026-02-01T00:00:00.000Z");
    upload();
    assertThat(asked)
        .contains("POST uploadId=fresh")
        .noneMatch(request -> request.contains("other"));
  }

  /// The upload may have ended since it was listed, or its parts may not be listed.
  @ParameterizedTest
  @ValueSource(ints = {403, 404})
  void whereThePartsAreNotListedAllOfThemAreSent(int status) throws IOException {
    uploads = unfinished("model", "gone", "2026-02-01T00:00:00.000Z");
    statusOfParts = status;
    upload();
    assertThat(asked)
        .contains(
            "PUT partNumber=1&uploadId=fresh",
            "PUT partNumber=2&uploadId=fresh",
            "POST uploadId=fresh");
  }

  /// S3 sends the status before it knows whether it can put the parts together.
  @Test
  void anEndThatFailsAfterItsStatusIsAFailure() throws IOException {
    answerOfEnd = "<Error><Code>AccessDenied</Code></Error>";
    assertThatThrownBy(this::upload)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("AccessDenied");
    assertThat(asked).containsOnlyOnce("POST uploadId=fresh").contains("DELETE uploadId=fresh");
    // The failure stays the first one if the upload cannot be aborted.
    statusOfAbort = 409;
    assertThatThrownBy(this::upload)
        .hasMessageContaining("AccessDenied")
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
    answerOfEnd = "<Error><Code>InternalError</Code></Error>";
    asked.clear();
    assertThatThrownBy(this::upload).hasMessageContaining("after 3 attempts");
    assertThat(asked).filteredOn("POST uploadId=fresh"::equals).hasSizeGreaterThan(1);
  }

  /// As a server or a proxy may answer that does not know the error before it sends the status.
  @Test
  void aPartWhoseAnswerHoldsAnErrorIsAFailure() {
    answerOfPart = "<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code></Error>";
    assertThatThrownBy(this::upload)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("AccessDenied");
    assertThat(asked).contains("DELETE uploadId=fresh").doesNotContain("POST uploadId=fresh");
  }

  @Test
  void aFileThatBecomesShorterMeanwhileIsAFailure() {
    whenBegun =
        () -> {
          try (FileChannel file =
              FileChannel.open(folder.resolve("model"), StandardOpenOption.WRITE)) {
            file.truncate(1000);
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }
        };
    assertThatThrownBy(this::upload).isInstanceOf(TransferException.class);
    assertThat(asked).contains("DELETE uploadId=fresh").doesNotContain("POST uploadId=fresh");
  }

  /// The server is not trusted: an unfinished upload is only taken up if it is told in full.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "<Key>model</Key><Initiated>2026-02-01T00:00:00.000Z</Initiated>",
        "<Key>model</Key><UploadId>other</UploadId>",
        "<UploadId>other</UploadId><Initiated>2026-02-01T00:00:00.000Z</Initiated>",
        "<Key>elsewhere</Key><UploadId>other</UploadId><Initiated>2026-02-01T00:00:00.000Z</Initiated>"
      })
  void anUploadThatIsToldInPartIsNotTakenUp(String told) throws IOException {
    uploads = "<Upload>" + told + "</Upload>";
    upload();
    assertThat(asked)
        .contains("PUT partNumber=2&uploadId=fresh", "POST uploadId=fresh")
        .noneMatch(request -> request.contains("other"));
    assertThatThrownBy(() -> store.endUploads(OBJECT, _ -> true))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("lacks a part, or lies elsewhere");
    assertThat(asked).noneMatch(request -> request.startsWith("DELETE"));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "<ETag>" + MD5_OF_ZERO + "</ETag><Size>1</Size>",
        "<PartNumber>0</PartNumber><ETag>" + MD5_OF_ZERO + "</ETag><Size>1</Size>",
        "<PartNumber>2</PartNumber><Size>1</Size>",
        "<PartNumber>2</PartNumber><ETag>" + MD5_OF_ZERO + "</ETag>",
        "<PartNumber>2</PartNumber><ETag>" + MD5_OF_ZERO + "</ETag><Size>2</Size>",
        "<PartNumber>3</PartNumber><ETag>" + MD5_OF_ZERO + "</ETag><Size>1</Size>"
      })
  void aPartThatIsNotOfThisFileIsSentAnew(String told) throws IOException {
    uploads = unfinished("model", "other", "2026-02-01T00:00:00.000Z");
    part = told;
    upload();
    assertThat(asked)
        .contains(
            "PUT partNumber=1&uploadId=fresh",
            "PUT partNumber=2&uploadId=fresh",
            "POST uploadId=fresh");
  }

  /// S3 takes at most 10,000 parts, each of at least 5 MiB.
  @ParameterizedTest
  @CsvSource({"0, 5", "52428800000, 5", "52428800001, 10", "104857600001, 15"})
  void largeFilesHaveLargerParts(long size, long mebibytes) {
    assertThat(S3Upload.partBytes(size)).isEqualTo(mebibytes << 20);
  }

  @Test
  void theNamesOfAServerAreEscaped() throws IOException {
    begun = "<UploadId>a%20b</UploadId>";
    upload();
    assertThat(asked).contains("PUT partNumber=2&uploadId=a%20b", "POST uploadId=a%20b");
    assertThat(end).contains("<PartNumber>2</PartNumber><ETag>&quot;sent&quot;</ETag>");
  }

  @Test
  void aFileOfOnePartIsSentAtOnce() throws IOException {
    upload(PART);
    assertThat(asked).containsExactly("PUT null");
  }

  /// As after an attempt to complete it whose answer was lost.
  @Test
  void anUploadThatIsGoneIsCompleteIfTheObjectIsOfItsParts() throws IOException {
    uploads = unfinished("model", "late", "2026-02-01T00:00:00.000Z");
    etagOfPart = MD5_OF_PART_ONE;
    statusOfEnd = 404;
    etagAfter = ETAG;
    upload();
    assertThat(asked).containsOnlyOnce("HEAD null");
    sizeThere = BYTES - 1;
    assertNotFound();
    // Another process has ended the upload, or has replaced the object.
    sizeThere = BYTES;
    etagAfter = "d41d8cd98f00b204e9800998ecf8427e-2";
    assertNotFound();
  }

  /// As of objects that SSE-KMS encrypts.
  @Test
  void whereETagsAreNoMd5AnUploadThatIsGoneIsCompleteIfTheObjectIsAnother() throws IOException {
    statusOfEnd = 404;
    upload();
    end = "";
    etagAfter = etagBefore;
    assertNotFound();
    end = "";
    statusBefore = 404;
    upload();
    end = "";
    statusBefore = 403;
    etagAfter = "after";
    assertNotFound();
  }

  private void assertNotFound() {
    assertThatThrownBy(this::upload)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("404");
  }

  @Test
  void thePartsThatAreThereStayIfTheUploadThatWasBegunCannotBeAborted() {
    uploads = unfinished("model", "late", "2026-02-01T00:00:00.000Z");
    statusOfAbort = 409;
    assertThatThrownBy(this::upload).isInstanceOf(TransferException.class);
    assertThat(asked).contains("DELETE uploadId=fresh").doesNotContain("DELETE uploadId=late");
  }

  /// The client does not read the bytes behind the bound.
  @Test
  void anAnswerThatIsTooLongNamesNoUpload() {
    begun = " ".repeat(1 << 20) + "<UploadId>fresh</UploadId>";
    assertThatThrownBy(this::upload)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("the server named no upload");
  }

  @Test
  void aRequestForASizeIsMadeAsOftenAsTheLimitsSay() {
    failing.set(Integer.MAX_VALUE);
    assertThatThrownBy(() -> store.open(OBJECT, CachePolicy.BUFFERED))
        .isInstanceOf(TransferException.class);
    assertThat(asked).containsExactly("HEAD null", "HEAD null", "HEAD null");
  }

  /// The CRT may rewind the stream before it sends it again.
  @Test
  void aBodyInMemoryBeginsAnewAfterARewind() {
    HttpRequestBodyStream body = S3Call.Body.of(new byte[] {1, 2, 3}).open();
    assertThat(body.sendRequestBody(ByteBuffer.allocate(2))).isFalse();
    assertThat(body.resetPosition()).isTrue();
    ByteBuffer again = ByteBuffer.allocate(4);
    assertThat(body.sendRequestBody(again)).isTrue();
    assertThat(again.flip()).isEqualTo(ByteBuffer.wrap(new byte[] {1, 2, 3}));
  }
}
