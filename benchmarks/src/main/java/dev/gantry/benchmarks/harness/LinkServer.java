// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// A server in its own process whose link resembles that of object storage: each answer begins
/// late, and each connection has a maximum rate. It serves ranges of one file under every name,
/// over HTTP, to S3 clients and as a hub. It accepts uploads to S3 and discards them.
public final class LinkServer implements AutoCloseable {
  private static final Pattern RANGE =
      Pattern.compile("range: *bytes=(\\d+)-(\\d+)", Pattern.CASE_INSENSITIVE);

  private static final Pattern LENGTH =
      Pattern.compile("content-length: *(\\d+)", Pattern.CASE_INSENSITIVE);

  /// How many bytes a connection sends at once before it waits as its rate demands.
  private static final long PIECE_BYTES = 1 << 20;

  private final Process process;
  private final int port;

  private LinkServer(Process process, int port) {
    this.process = process;
    this.port = port;
  }

  /// Starts a server.
  ///
  /// @param file the file to serve
  /// @param delayMillis the delay before each answer, in milliseconds
  /// @param bytesPerSecond the maximum rate of one connection
  public static LinkServer start(Path file, long delayMillis, long bytesPerSecond)
      throws IOException {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx128m",
                "-cp",
                System.getProperty("java.class.path"),
                LinkServer.class.getName(),
                file.toString(),
                Long.toString(delayMillis),
                Long.toString(bytesPerSecond))
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    String line = process.inputReader().readLine();
    if (line == null) {
      throw new IOException("the server did not start");
    }
    return new LinkServer(process, Integer.parseInt(line));
  }

  /// Returns the address of the server, without a trailing slash.
  public String address() {
    return "http://127.0.0.1:" + port;
  }

  @Override
  public void close() {
    process.destroyForcibly();
    process.onExit().join();
  }

  /// @param arguments the file, the delay in milliseconds, and the bytes a second of a connection
  public static void main(String[] arguments) throws IOException {
    ChildJvm.endWithParent();
    Path file = Path.of(arguments[0]);
    long delayMillis = Long.parseLong(arguments[1]);
    long bytesPerSecond = Long.parseLong(arguments[2]);
    try (ServerSocketChannel door = ServerSocketChannel.open()) {
      door.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 1024);
      System.out.println(((InetSocketAddress) door.getLocalAddress()).getPort());
      while (true) {
        SocketChannel client = door.accept();
        Thread.ofPlatform().daemon().start(() -> serve(client, file, delayMillis, bytesPerSecond));
      }
    }
  }

  private static void serve(
      SocketChannel client, Path file, long delayMillis, long bytesPerSecond) {
    try (client;
        FileChannel bytes = FileChannel.open(file);
        BufferedReader heads =
            new BufferedReader(
                new InputStreamReader(
                    Channels.newInputStream(client), StandardCharsets.ISO_8859_1))) {
      client.setOption(StandardSocketOptions.TCP_NODELAY, true);
      for (String head = head(heads); !head.isEmpty(); head = head(heads)) {
        if (head.startsWith("HEAD") || (head.startsWith("GET") && !head.contains("uploads"))) {
          TimeUnit.MILLISECONDS.sleep(delayMillis);
          answer(head, client, bytes, bytesPerSecond);
        } else {
          take(head, heads, bytesPerSecond);
          TimeUnit.MILLISECONDS.sleep(delayMillis);
          confirm(head, client);
        }
      }
    } catch (IOException _) {
      // The client has closed the connection.
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
    }
  }

  /// Reads the next request up to its empty line; returns nothing at the end of the connection.
  private static String head(BufferedReader in) throws IOException {
    StringBuilder head = new StringBuilder();
    for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) {
      head.append(line).append('\n');
    }
    return head.toString();
  }

  /// Reads a request's body at the maximum rate of the connection.
  private static void take(String head, BufferedReader in, long bytesPerSecond)
      throws IOException, InterruptedException {
    Matcher announced = LENGTH.matcher(head);
    long length = announced.find() ? Long.parseLong(announced.group(1)) : 0;
    long begun = System.nanoTime();
    for (long at = 0; at < length; ) {
      long piece = Math.min(PIECE_BYTES, length - at);
      for (long done = 0; done < piece; ) {
        done += in.skip(piece - done);
      }
      at += piece;
      long due = begun + at * 1_000_000_000L / bytesPerSecond;
      TimeUnit.NANOSECONDS.sleep(due - System.nanoTime());
    }
  }

  /// Confirms any step of an upload.
  private static void confirm(String head, SocketChannel client) throws IOException {
    String step = head.contains("?uploads") ? "Initiate" : "Complete";
    String body =
        "<%1$sMultipartUploadResult><UploadId>one</UploadId><ETag>\"one\"</ETag></%1$sMultipartUploadResult>"
            .formatted(step);
    String answer =
        "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nETag: \"one\"\r\nContent-Length: "
            + body.length()
            + "\r\n\r\n"
            + body;
    send(client, answer);
  }

  private static void send(SocketChannel client, String text) throws IOException {
    ByteBuffer sent = ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII));
    while (sent.hasRemaining()) {
      int _ = client.write(sent);
    }
  }

  private static void answer(
      String head, SocketChannel client, FileChannel bytes, long bytesPerSecond)
      throws IOException, InterruptedException {
    long size = bytes.size();
    Matcher range = RANGE.matcher(head);
    boolean part = range.find();
    long from = part ? Long.parseLong(range.group(1)) : 0;
    long end = part ? Math.min(size, Long.parseLong(range.group(2)) + 1) : size;
    String answer =
        String.format(
            Locale.ROOT,
            "HTTP/1.1 %s%nContent-Length: %d%nETag: \"one\"%n"
                + "Last-Modified: Thu, 01 Oct 2026 00:00:00 GMT%nAccept-Ranges: bytes%n"
                + "X-Repo-Commit: %040d%nX-Linked-Etag: \"%08x\"%nX-Linked-Size: %d%n%s%n",
            part ? "206 Partial Content" : "200 OK",
            end - from,
            1,
            // Each name has bytes of its own, as a cache of the hub sees them.
            head.lines().findFirst().orElseThrow().hashCode(),
            size,
            part
                ? String.format(Locale.ROOT, "Content-Range: bytes %d-%d/%d%n", from, end - 1, size)
                : "");
    send(client, answer.replace(System.lineSeparator(), "\r\n"));
    if (head.startsWith("HEAD")) {
      return;
    }
    long begun = System.nanoTime();
    for (long at = from; at < end; ) {
      long piece = Math.min(PIECE_BYTES, end - at);
      for (long done = 0; done < piece; ) {
        done += bytes.transferTo(at + done, piece - done, client);
      }
      at += piece;
      long due = begun + (at - from) * 1_000_000_000L / bytesPerSecond;
      TimeUnit.NANOSECONDS.sleep(due - System.nanoTime());
    }
  }
}
