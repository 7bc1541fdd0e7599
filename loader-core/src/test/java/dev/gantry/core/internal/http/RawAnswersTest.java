// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// A server whose answers the tests give character by character, for requests that are made only
/// once.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class RawAnswersTest {
  private static final String HEADERS =
      "ETag: \"one\"\r\nContent-Range: bytes 0-0/1\r\nContent-Length: 1\r\n";
  private static final String RIGHT = "HTTP/1.1 206 Partial Content\r\n" + HEADERS + "\r\nx";

  private final ServerSocket door;
  private final AtomicInteger connections = new AtomicInteger();
  private final CountDownLatch ended = new CountDownLatch(1);
  private final HttpStore store =
      new HttpStore(new RetryLimits(1, Duration.ZERO, Duration.ofSeconds(10)));
  private volatile String answer = RIGHT;

  /// How many requests a connection answers before the server closes it.
  private volatile int answersEach = Integer.MAX_VALUE;

  RawAnswersTest() throws IOException {
    door = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    Thread.ofVirtual().start(this::accept);
  }

  @AfterEach
  void close() throws IOException {
    store.close();
    door.close();
  }

  private void accept() {
    try {
      while (true) {
        Socket client = door.accept();
        connections.incrementAndGet();
        Thread.ofVirtual().start(() -> serve(client));
      }
    } catch (IOException _) {
      // The test has closed the server socket.
    }
  }

  private void serve(Socket client) {
    try (client) {
      for (int i = 0; i < answersEach; i++) {
        StringBuilder head = new StringBuilder();
        while (!head.toString().endsWith("\r\n\r\n")) {
          int next = client.getInputStream().read();
          if (next < 0) {
            ended.countDown();
            return;
          }
          head.append((char) next);
        }
        client.getOutputStream().write(answer.getBytes(StandardCharsets.ISO_8859_1));
      }
    } catch (IOException _) {
      // The client has closed its connection.
    }
  }

  private long size() {
    try (SourceFile open = new SourceFile(file(), store.open(file(), CachePolicy.BUFFERED))) {
      return open.size();
    }
  }

  private Location.Remote file() {
    return (Location.Remote) Location.of("http://127.0.0.1:" + door.getLocalPort() + "/file");
  }

  /// Reads a file of one byte. The opening of the file reads that byte, too.
  private String read() {
    try (SourceFile open = new SourceFile(file(), store.open(file(), CachePolicy.BUFFERED));
        Arena arena = Arena.ofShared()) {
      MemorySegment target = arena.allocate(1);
      boolean _ = open.read(target, 0, 1, false);
      return Character.toString((char) target.get(ValueLayout.JAVA_BYTE, 0));
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "HTTP/1.1 206\nETag: \"one\"\nContent-Range: bytes 0-0/1\ncontent-length: 1\n\nx",
        "HTTP/1.1 100 Continue\r\n\r\n" + RIGHT,
        "HTTP/1.1 206 Partial Content\r\nContent-Length: 1\r\n" + HEADERS + "\r\nx",
        """
        HTTP/1.1 206 Partial Content\r
        ETag: "one"\r
        Content-Range: bytes 0-0/1\r
        Transfer-Encoding: chunked\r
        \r
        1;a=b\r
        x\r
        0\r
        Trailer: any\r
        \r
        """
      })
  void aConnectionServesOneRequestAfterAnother(String right) {
    answer = right;
    assertThat(read()).isEqualTo("x");
    assertThat(connections).hasValue(1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "HTTP/1.0 206 Partial Content\r\n" + HEADERS + "\r\nx",
        "HTTP/1.1 206 Partial Content\r\nConnection: close\r\n" + HEADERS + "\r\nx"
      })
  void aConnectionThatTheServerEndsIsNotUsedAgain(String right) {
    answer = right;
    assertThat(read()).isEqualTo("x");
    assertThat(connections).hasValue(2);
  }

  @Test
  void aStoreClosesItsIdleConnections() throws InterruptedException {
    assertThat(read()).isEqualTo("x");
    store.close();
    assertThat(ended.await(10, TimeUnit.SECONDS)).isTrue();
  }

  /// The client could take these bytes for the answer to its next request.
  @Test
  void aConnectionWithBytesBehindItsAnswerIsNotUsedAgain() {
    answer = RIGHT + RIGHT.replace("\r\nx", "\r\ny");
    assertThat(read()).isEqualTo("x");
    assertThat(connections).hasValue(2);
  }

  @Test
  void aBodyMayEndWithItsConnection() {
    answersEach = 1;
    answer = RIGHT.replace("Content-Length: 1\r\n", "");
    assertThat(read()).isEqualTo("x");
  }

  /// The repeat counts as no attempt, because a server may close an idle connection at any time.
  @Test
  void aConnectionThatWasClosedMeanwhileIsReplaced() {
    answersEach = 1;
    assertThat(read()).isEqualTo("x");
    assertThat(connections).hasValue(2);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "SSH-2.0 | not of HTTP/1.1",
        "HTTP/2 206 | not of HTTP/1.1",
        "HTTP/1.1 206@: nameless | header without a name",
        "HTTP/1.1 206@ : x | header without a name",
        "HTTP/1.1 206@ETag: \u007f@Content-Range: bytes 0-0/1 | or with a control character",
        "HTTP/1.1 206@ETag : x | header without a name",
        "HTTP/1.1 206@Content-Length: -1 | wrong Content-Length: [-1]",
        "HTTP/1.1 206@Content-Length: 1@Content-Length: 2 | wrong Content-Length: [1, 2]",
        "HTTP/1.1 206@Transfer-Encoding: gzip, chunked | unknown Transfer-Encoding",
        "HTTP/1.1 206@Transfer-Encoding: chunked@@many@ | a chunk of the answer has no length",
        "HTTP/1.1 206@Transfer-Encoding: chunked@@ffffffffffffffff@ | too long",
        "HTTP/1.1 206@Range@Transfer-Encoding: chunked@@1@xy@0@ | is longer than it says",
        "HTTP/1.1 206@Long: 65536 | a line of the answer is too long",
        "HTTP/1.1 206@Many: 65536 | headers are too long"
      })
  void anAnswerThatIsNoneIsAnError(String sent, String reason) {
    answer =
        sent.replace("Range", "ETag: \"one\"@Content-Range: bytes 0-0/1")
                .replace("@", "\r\n")
                .replace("Long: 65536", "Long: " + "x".repeat(65536))
                .replace("Many: 65536", "Many: x\r\n".repeat(16384))
            + "\r\n\r\n";
    assertThatThrownBy(this::read).hasMessageContaining(reason);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "0-0/1 | 0-1/1 | the server sent another range: bytes 0-1/1",
        "\"one\" | W/\"one\" | neither a strong ETag nor Last-Modified"
      })
  void anAnswerForAnotherRangeOrWithAWeakVersionIsRefused(
      String right, String sent, String reason) {
    answer = RIGHT.replace(right, sent);
    assertThatThrownBy(this::read).hasMessageContaining(reason);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "416 Range Not Satisfiable@Content-Range: bytes */0@ETag: \"one\"",
        "200 OK@ETag: \"one\"",
        "200 OK@Last-Modified: Sat, 28 Nov 2026 10:00:00 GMT"
      })
  void anAnswerOfNoBytesForTheFirstByteIsThatOfAnEmptyFile(String sent) {
    answer = "HTTP/1.1 " + sent.replace("@", "\r\n") + "\r\nContent-Length: 0\r\n\r\n";
    assertThat(size()).isZero();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "Content-Length: 0",
        "Content-Length: 1@ETag: \"one\"",
        "ETag: \"one\"@Connection: close"
      })
  void anotherWholeFileIsRefused(String sent) {
    answer = "HTTP/1.1 200 OK\r\n" + sent.replace("@", "\r\n") + "\r\n\r\n";
    assertThatThrownBy(this::size).hasMessageContaining("does not serve ranges");
  }
}
