// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.testing;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;

/// Stands between clients and an S3 server. The proxy passes requests on as they are, and damages
/// chosen answers to requests for ranges. It can also refuse uploads.
public final class FaultProxy implements AutoCloseable {
  public enum Answer {
    RIGHT,
    /// The connection ends in the middle of the body.
    CUT,
    /// The connection ends before the answer.
    RESET,
    /// The answer is well-formed, but has only half of the bytes.
    SHORT,
    /// The answer is well-formed, but its Content-Range names another range.
    OTHER_RANGE,
    /// The answer has status 200 and no Content-Range, as if the body were the whole object.
    WHOLE,
    /// The head and half of the body come, and nothing more until the proxy is closed.
    STALLED,
    /// The head comes, and then the body byte by byte, with a pause before each byte.
    DRIPS,
    SLOW_DOWN("503 Slow Down", "SlowDown"),
    /// The server is busy, and its header Retry-After asks the client to wait for a second.
    BUSY("503 Slow Down", "SlowDown"),
    INTERNAL_ERROR("500 Internal Server Error", "InternalError"),
    EXPIRED("400 Bad Request", "ExpiredToken"),
    DENIED("403 Forbidden", "AccessDenied"),
    GONE("404 Not Found", "NoSuchKey"),
    FAILED_CONDITION("412 Precondition Failed", "PreconditionFailed"),
    CONFLICT("409 Conflict", "OperationAborted"),
    /// The connection ends in the middle of an upload's body. The server gets nothing of the
    /// body.
    CUT_UPLOAD;

    private final String status;
    private final String code;

    Answer() {
      this("", "");
    }

    Answer(String status, String code) {
      this.status = status;
      this.code = code;
    }
  }

  private static final long DRIP_MILLIS = 10;

  private final ServerSocket door;
  private final URI server;
  private final Set<Socket> open = ConcurrentHashMap.newKeySet();
  private final AtomicInteger ranges = new AtomicInteger();
  private final CountDownLatch closed = new CountDownLatch(1);
  private final AtomicInteger uploads = new AtomicInteger();
  private volatile IntFunction<Answer> answers = _ -> Answer.RIGHT;
  private volatile IntFunction<Answer> uploadAnswers = _ -> Answer.RIGHT;

  public FaultProxy(URI server) {
    this.server = server;
    try {
      door = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    run("fault-proxy", this::accept);
  }

  private static void run(String name, Runnable work) {
    Thread.ofPlatform().daemon().name(name).start(work);
  }

  public URI endpoint() {
    return URI.create("http://127.0.0.1:" + door.getLocalPort());
  }

  /// Chooses the answers to requests for ranges.
  ///
  /// @param chosen maps the number of a request, from 0, to its answer
  public void answer(IntFunction<Answer> chosen) {
    ranges.set(0);
    answers = chosen;
  }

  /// Chooses the answers to requests that upload: `PUT` and `POST`. Requests that are refused do
  /// not reach the server.
  ///
  /// @param chosen maps the number of a request, from 0, to its answer
  public void answerUploads(IntFunction<Answer> chosen) {
    uploads.set(0);
    uploadAnswers = chosen;
  }

  /// The number of requests that upload since [#answerUploads] was called.
  public int uploads() {
    return uploads.get();
  }

  /// The number of requests for ranges since [#answer] was called.
  public int ranges() {
    return ranges.get();
  }

  private void accept() {
    try {
      while (true) {
        Socket client = door.accept();
        open.add(client);
        run("fault-proxy-connection", () -> serve(client));
      }
    } catch (IOException _) {
      // The proxy was closed.
    }
  }

  private void serve(Socket client) {
    try (client;
        Socket upstream = new Socket(server.getHost(), server.getPort())) {
      open.add(upstream);
      InputStream requests = new BufferedInputStream(client.getInputStream());
      InputStream responses = new BufferedInputStream(upstream.getInputStream());
      for (byte[] head = head(requests); head.length > 0; head = head(requests)) {
        Answer upload = isUpload(head) ? uploadAnswers.apply(uploads.getAndIncrement()) : null;
        if (upload == Answer.CUT_UPLOAD) {
          byte[] _ = requests.readNBytes(length(head) / 2);
          return;
        }
        if (upload != null && !upload.status.isEmpty()) {
          if (header(head, "expect").isEmpty()) {
            byte[] _ = requests.readNBytes(length(head));
          }
          refuse(upload, client.getOutputStream());
          continue;
        }
        upstream.getOutputStream().write(head);
        copy(requests, upstream.getOutputStream(), length(head));
        upstream.getOutputStream().flush();
        if (upload == Answer.RESET) {
          // The server has carried out the upload, but the client does not get its answer.
          byte[] answered = head(responses);
          byte[] _ = body(answered, responses);
          return;
        }
        if (!answer(head, responses, client.getOutputStream())) {
          return;
        }
      }
      open.remove(upstream);
    } catch (IOException | InterruptedException _) {
      // The client or the server closed its connection, or the test is over.
    } finally {
      open.remove(client);
    }
  }

  /// Sends the chosen answer to a request.
  ///
  /// @return whether the connection stays open
  private boolean answer(byte[] request, InputStream responses, OutputStream client)
      throws IOException, InterruptedException {
    Answer answer =
        header(request, "range").isEmpty() || text(request).startsWith("HEAD")
            ? Answer.RIGHT
            : answers.apply(ranges.getAndIncrement());
    byte[] head = head(responses);
    boolean bodiless = text(request).startsWith("HEAD") || text(head).contains(" 304 ");
    byte[] body = bodiless ? new byte[0] : body(head, responses);
    int length = body.length;
    switch (answer) {
      case RIGHT -> write(client, head, body, length);
      case CUT -> {
        write(client, head, body, length / 2);
        return false;
      }
      case RESET -> {
        return false;
      }
      case SHORT -> write(client, withLength(head, length / 2), body, length / 2);
      case OTHER_RANGE -> {
        String moved = text(head).replaceFirst("(?i)(content-range: bytes )(\\d+)-", "$11$2-");
        write(client, moved.getBytes(StandardCharsets.ISO_8859_1), body, length);
      }
      case WHOLE -> {
        String whole =
            text(head)
                .replaceFirst(" 206 [^\r]*", " 200 OK")
                .replaceFirst("(?i)content-range:[^\n]*\n", "");
        write(client, whole.getBytes(StandardCharsets.ISO_8859_1), body, length);
      }
      case STALLED -> {
        write(client, head, body, length / 2);
        closed.await();
        return false;
      }
      case DRIPS -> {
        write(client, head, body, 0);
        for (int at = 0; at < length && !closed.await(DRIP_MILLIS, TimeUnit.MILLISECONDS); at++) {
          client.write(body, at, 1);
          client.flush();
        }
        return false;
      }
      case SLOW_DOWN, BUSY, INTERNAL_ERROR, EXPIRED, DENIED, GONE, FAILED_CONDITION, CONFLICT ->
          refuse(answer, client);
      case CUT_UPLOAD -> throw new IllegalArgumentException("no answer to a request for a range");
    }
    return true;
  }

  private static boolean isUpload(byte[] head) {
    return text(head).startsWith("PUT ") || text(head).startsWith("POST ");
  }

  private static void refuse(Answer answer, OutputStream client) throws IOException {
    byte[] error =
        ("<?xml version=\"1.0\"?><Error><Code>"
                + answer.code
                + "</Code><Message>as told</Message></Error>")
            .getBytes(StandardCharsets.UTF_8);
    String refused =
        "HTTP/1.1 "
            + answer.status
            + (answer == Answer.BUSY ? "\r\nRetry-After: 1" : "")
            + "\r\nContent-Type: application/xml\r\nContent-Length: "
            + error.length
            + "\r\n\r\n";
    write(client, refused.getBytes(StandardCharsets.ISO_8859_1), error, error.length);
  }

  private static void write(OutputStream client, byte[] head, byte[] body, int count)
      throws IOException {
    client.write(head);
    client.write(body, 0, count);
    client.flush();
  }

  /// Reads the head of a request or response, up to the empty line. The result is empty at the
  /// end of the connection.
  private static byte[] head(InputStream in) throws IOException {
    ByteArrayOutputStream head = new ByteArrayOutputStream();
    byte[] end = {'\r', '\n', '\r', '\n'};
    int matched = 0;
    while (matched < end.length) {
      int next = in.read();
      if (next < 0) {
        return new byte[0];
      }
      head.write(next);
      matched = next == end[matched] ? matched + 1 : next == '\r' ? 1 : 0;
    }
    return head.toByteArray();
  }

  private static byte[] body(byte[] head, InputStream in) throws IOException {
    if (!header(head, "transfer-encoding").equalsIgnoreCase("chunked")) {
      return in.readNBytes(length(head));
    }
    ByteArrayOutputStream body = new ByteArrayOutputStream();
    StringBuilder size = new StringBuilder();
    while (true) {
      size.setLength(0);
      for (int next = in.read(); next != '\n'; next = in.read()) {
        if (next < 0) {
          throw new EOFException();
        }
        body.write(next);
        size.append((char) next);
      }
      body.write('\n');
      int bytes = Integer.parseInt(size.toString().strip(), 16);
      body.write(in.readNBytes(bytes + 2));
      if (bytes == 0) {
        return body.toByteArray();
      }
    }
  }

  private static String text(byte[] head) {
    return new String(head, StandardCharsets.ISO_8859_1);
  }

  private static String header(byte[] head, String name) {
    return Arrays.stream(text(head).split("\r\n"))
        .filter(line -> line.toLowerCase(Locale.ROOT).startsWith(name + ":"))
        .map(line -> line.substring(name.length() + 1).strip())
        .findFirst()
        .orElse("");
  }

  private static int length(byte[] head) {
    String length = header(head, "content-length");
    return length.isEmpty() ? 0 : Integer.parseInt(length);
  }

  private static byte[] withLength(byte[] head, int length) {
    return text(head)
        .replaceFirst("(?i)content-length:[^\r]*", "Content-Length: " + length)
        .getBytes(StandardCharsets.ISO_8859_1);
  }

  private static void copy(InputStream from, OutputStream to, int count) throws IOException {
    to.write(from.readNBytes(count));
  }

  @Override
  public void close() {
    closed.countDown();
    try {
      door.close();
      for (Socket socket : open) {
        socket.close();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
