// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import dev.gantry.core.Location;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/// An HTTP server on the loopback that serves ranges of files in memory, and misbehaves on
/// request. Thread-safe.
public final class RangeServer implements AutoCloseable {
  /// The server's answer to a request.
  public enum Answer {
    /// The requested range.
    RIGHT,
    /// The range, without its length.
    WITHOUT_LENGTH,
    /// The whole file, with status 200.
    WHOLE_FILE,
    /// Half of the range, under the whole range's headers.
    HALF,
    /// Half of the range, without a length.
    HALF_WITHOUT_LENGTH,
    /// The range and one byte more.
    ONE_BYTE_MORE,
    /// The range of a file with another ETag.
    OTHER_ETAG,
    /// The range without an ETag or a date.
    NO_VALIDATOR,
    /// The bytes of another range than the requested one; the headers name the range that is sent.
    OTHER_RANGE,
    /// Status 206 without `Content-Range`.
    NO_RANGE,
    /// The range, whose headers claim that it is compressed.
    ENCODED,
    /// Status 404.
    NOT_FOUND,
    /// Status 403.
    FORBIDDEN,
    /// Status 416.
    UNSATISFIABLE,
    /// Status 429, with the demand to retry after one second.
    TOO_MANY,
    /// Status 503.
    UNAVAILABLE,
    /// Status 503, with the demand to retry at a date in one to two seconds.
    UNAVAILABLE_UNTIL,
    /// Status 503, with the demand to retry after five minutes.
    UNAVAILABLE_FOR_LONG,
    /// No answer: the server closes the connection.
    CLOSED,
    /// The headers and half of the range, then no byte until the server is closed.
    STALLS,
    /// The headers, then single bytes with pauses, until the client closes the connection or the
    /// server is closed.
    DRIPS,
    /// No answer, not even headers, until the server is closed.
    SILENT,
    /// A redirect to the same file on `/moved`.
    REDIRECT
  }

  /// The bytes of a file and their ETag.
  @SuppressWarnings("ArrayRecordComponent") // Nothing compares them as records.
  private record Version(byte[] bytes, String tag) {}

  private static final Pattern RANGE = Pattern.compile("bytes=(\\d+)-(\\d+)");
  private static final int PIECE_BYTES = 64 << 10;
  private static final long DRIP_MILLIS = 10;
  private static final int LAST_MILLIS = 10_000;
  private static final String MOVED = "/moved";

  static {
    // Without this setting the JDK's server sends a body 40 ms later, when its headers were
    // acknowledged.
    System.setProperty("sun.net.httpserver.nodelay", "true");
  }

  /// A handler that may answer a request in place of this server.
  @FunctionalInterface
  public interface Front {
    /// @return whether the request was answered
    boolean answers(HttpExchange exchange) throws IOException;
  }

  private final HttpServer server;
  private final String address;
  private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
  private final Map<String, Version> files = new ConcurrentHashMap<>();
  private final CountDownLatch closing = new CountDownLatch(1);
  private final AtomicInteger requests = new AtomicInteger();
  private final AtomicLong bytes = new AtomicLong();
  private final AtomicInteger underWay = new AtomicInteger();
  private final AtomicInteger mostUnderWay = new AtomicInteger();
  private volatile IntFunction<Answer> answers = _ -> Answer.RIGHT;
  private volatile long delayMillis;
  private volatile Front front = _ -> false;
  private volatile Runnable afterHalf = () -> {};

  public RangeServer() {
    this(null);
  }

  /// @param tls the TLS context for a server of `https`; null for a server of `http`
  public RangeServer(@Nullable SSLContext tls) {
    InetSocketAddress loopback = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    try {
      if (tls == null) {
        server = HttpServer.create(loopback, 0);
      } else {
        HttpsServer secure = HttpsServer.create(loopback, 0);
        secure.setHttpsConfigurator(new HttpsConfigurator(tls));
        server = secure;
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    address = (tls == null ? "http://127.0.0.1:" : "https://127.0.0.1:") + port() + "/";
    server.setExecutor(threads);
    server.createContext("/", this::handle);
    server.start();
  }

  /// Serves `bytes` from now on, in place of any earlier file of the name.
  public Location put(String name, byte[] bytes) {
    files.put("/" + name, new Version(bytes.clone(), "\"" + Arrays.hashCode(bytes) + "\""));
    return Location.of(address + name.replace(" ", "%20"));
  }

  /// Stops serving the file of this name.
  public void remove(String name) {
    files.remove("/" + name);
  }

  /// Lets `first` handle each later request before this server.
  public void before(Front first) {
    front = first;
  }

  /// Returns the names of the files that begin with a text, in order.
  public List<String> names(String beginning) {
    return files.keySet().stream()
        .map(name -> name.substring(1))
        .filter(name -> name.startsWith(beginning))
        .sorted()
        .toList();
  }

  public int port() {
    return server.getAddress().getPort();
  }

  /// Returns the location of a file that the server does not have.
  public Location missing(String name) {
    return Location.of(address + name);
  }

  /// Sets an action that runs after the first half of each [Answer#HALF], before the connection is
  /// closed.
  public void afterHalf(Runnable action) {
    afterHalf = action;
  }

  /// Resets the count of requests, and answers each request by its number, from 0.
  public void answer(IntFunction<Answer> byNumber) {
    answers = byNumber;
    requests.set(0);
  }

  /// Gives all requests this answer from now on.
  public void answerAll(Answer answer) {
    answer(_ -> answer);
  }

  /// Sets a pause before each answer.
  public void delay(long millis) {
    delayMillis = millis;
  }

  /// Returns the number of requests since the last call of [#answer].
  public int requests() {
    return requests.get();
  }

  /// Returns how many bytes were sent as ranges since the server was made.
  public long bytes() {
    return bytes.get();
  }

  /// Returns the largest number of concurrent requests so far.
  public int mostUnderWay() {
    return mostUnderWay.get();
  }

  private void handle(HttpExchange exchange) {
    int now = underWay.incrementAndGet();
    mostUnderWay.accumulateAndGet(now, Math::max);
    try (exchange) {
      if (delayMillis > 0) {
        TimeUnit.MILLISECONDS.sleep(delayMillis);
      }
      if (!front.answers(exchange)) {
        reply(exchange, answers.apply(requests.getAndIncrement()));
      }
    } catch (IOException _) {
      // The client has closed the connection.
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
    } finally {
      underWay.decrementAndGet();
    }
  }

  private void reply(HttpExchange exchange, Answer answer)
      throws IOException, InterruptedException {
    // Only a proxy is asked for a whole address, and it never sees a request by TLS.
    if (server instanceof HttpsServer && exchange.getRequestURI().isAbsolute()) {
      exchange.sendResponseHeaders(400, -1);
      return;
    }
    String name = exchange.getRequestURI().getPath();
    boolean moved = name.startsWith(MOVED);
    name = moved ? name.substring(MOVED.length()) : name;
    Version version = files.get(name);
    if (version == null) {
      exchange.sendResponseHeaders(404, -1);
      return;
    }
    byte[] file = version.bytes();
    Matcher range = RANGE.matcher(String.valueOf(exchange.getRequestHeaders().getFirst("Range")));
    if (!range.matches()) {
      throw new IOException("no range");
    }
    int from = Integer.parseInt(range.group(1));
    int to = Math.min(Integer.parseInt(range.group(2)), file.length - 1) + 1;
    String tag = version.tag();
    String wanted = exchange.getRequestHeaders().getFirst("If-Range");
    boolean other = wanted != null && !wanted.equals(tag);
    exchange.getResponseHeaders().set("ETag", tag);
    switch (answer) {
      case RIGHT -> {
        if (other) {
          whole(exchange, file);
        } else if (file.length == 0) {
          exchange.getResponseHeaders().set("Content-Range", "bytes */0");
          exchange.sendResponseHeaders(416, -1);
        } else {
          send(exchange, file, from, to, to - from, to - from);
        }
      }
      case WITHOUT_LENGTH -> send(exchange, file, from, to, to - from, 0);
      case WHOLE_FILE -> whole(exchange, file);
      case HALF -> {
        send(exchange, file, from, to, (to - from) / 2, to - from);
        afterHalf.run();
      }
      case HALF_WITHOUT_LENGTH -> send(exchange, file, from, to, (to - from) / 2, 0);
      case ONE_BYTE_MORE -> send(exchange, file, from, to, to - from + 1, 0);
      case OTHER_ETAG -> {
        exchange.getResponseHeaders().set("ETag", tag.replaceFirst("\"", "\"another"));
        send(exchange, file, from, to, to - from, to - from);
      }
      case NO_VALIDATOR -> {
        exchange.getResponseHeaders().remove("ETag");
        send(exchange, file, from, to, to - from, to - from);
      }
      case OTHER_RANGE -> send(exchange, file, from + 1, to, to - from - 1, to - from - 1);
      case NO_RANGE -> {
        exchange.sendResponseHeaders(206, to - from);
        exchange.getResponseBody().write(file, from, to - from);
      }
      case ENCODED -> {
        exchange.getResponseHeaders().set("Content-Encoding", "gzip");
        send(exchange, file, from, to, to - from, to - from);
      }
      case NOT_FOUND -> exchange.sendResponseHeaders(404, -1);
      case FORBIDDEN -> exchange.sendResponseHeaders(403, -1);
      case UNSATISFIABLE -> exchange.sendResponseHeaders(416, -1);
      case TOO_MANY -> {
        exchange.getResponseHeaders().set("Retry-After", "1");
        exchange.sendResponseHeaders(429, -1);
      }
      case UNAVAILABLE -> exchange.sendResponseHeaders(503, -1);
      case UNAVAILABLE_UNTIL -> {
        exchange
            .getResponseHeaders()
            .set(
                "Retry-After",
                DateTimeFormatter.RFC_1123_DATE_TIME.format(
                    ZonedDateTime.now(ZoneOffset.UTC).plusSeconds(2)));
        exchange.sendResponseHeaders(503, -1);
      }
      case UNAVAILABLE_FOR_LONG -> {
        exchange.getResponseHeaders().set("Retry-After", "300");
        exchange.sendResponseHeaders(503, -1);
      }
      case DRIPS -> {
        send(exchange, file, from, to, 0, to - from);
        for (int at = from; at < to && !closing.await(DRIP_MILLIS, TimeUnit.MILLISECONDS); at++) {
          exchange.getResponseBody().write(file, at, 1);
          exchange.getResponseBody().flush();
        }
      }
      case CLOSED -> {}
      case STALLS -> {
        send(exchange, file, from, to, (to - from) / 2, to - from);
        closing.await();
      }
      case SILENT -> closing.await();
      case REDIRECT -> {
        if (moved) {
          send(exchange, file, from, to, to - from, to - from);
        } else {
          exchange.getResponseHeaders().set("Location", MOVED + name);
          exchange.sendResponseHeaders(302, -1);
        }
      }
    }
  }

  private static void whole(HttpExchange exchange, byte[] file) throws IOException {
    exchange.sendResponseHeaders(200, file.length);
    write(exchange.getResponseBody(), file, 0, file.length);
  }

  /// Writes in pieces, because the JDK's server keeps a buffer of the size of the longest write
  /// while a connection may be reused.
  private static void write(OutputStream body, byte[] file, int from, int count)
      throws IOException {
    for (int done = 0; done < count; done += PIECE_BYTES) {
      byte[] piece =
          Arrays.copyOfRange(file, from + done, from + Math.min(count, done + PIECE_BYTES));
      body.write(piece);
    }
  }

  /// @param announced the value of `Content-Length`; 0 for no such header
  private void send(HttpExchange exchange, byte[] file, int from, int to, int count, int announced)
      throws IOException {
    exchange
        .getResponseHeaders()
        .set("Content-Range", "bytes " + from + "-" + (to - 1) + "/" + file.length);
    exchange.sendResponseHeaders(206, announced);
    OutputStream body = exchange.getResponseBody();
    bytes.addAndGet(count);
    write(body, file, from, count);
    body.flush();
    if (announced == 0) {
      body.close();
    }
  }

  /// Stops a server after it has accepted all connections of clients. The JDK's server never
  /// closes a connection that it accepts while it is being stopped.
  static void stop(HttpServer server) {
    InetSocketAddress address = server.getAddress();
    try (Socket last = new Socket(address.getAddress(), address.getPort())) {
      last.setSoTimeout(LAST_MILLIS);
      // The server accepts connections in their order, and closes a connection without a request.
      last.shutdownOutput();
      int _ = last.getInputStream().read();
    } catch (IOException _) {
      // The server accepts no more connections.
    }
    server.stop(0);
  }

  @Override
  public void close() {
    closing.countDown();
    stop(server);
    threads.close();
  }
}
