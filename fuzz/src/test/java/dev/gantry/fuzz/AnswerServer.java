// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.regex.Pattern;

/// A server on this machine that gives each connection one answer and closes it; after the last
/// answer it repeats that answer. The server is also the proxy of this JVM, so that redirects to
/// other hosts reach it, too.
public final class AnswerServer {
  private static final int MAX_REQUEST_BYTES = 64 << 10;
  private static final int MAX_ANSWERS = 4;
  private static final int[] STATUSES = {200, 206, 301, 302, 307, 304, 401, 403, 404, 410, 416};
  private static final AnswerServer ONLY = new AnswerServer();

  private final ServerSocket door;
  private volatile Answers answers = new Answers(List.of(new byte[0]));

  /// The answers in their order, the last of them repeated.
  private static final class Answers {
    private final List<byte[]> all;
    private int given;

    Answers(List<byte[]> all) {
      this.all = all;
    }

    synchronized byte[] next() {
      byte[] next = all.get(given);
      given = Math.min(given + 1, all.size() - 1);
      return next;
    }
  }

  private AnswerServer() {
    try {
      door = new ServerSocket(0, 200, InetAddress.getLoopbackAddress());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    ProxySelector.setDefault(
        ProxySelector.of(new InetSocketAddress(InetAddress.getLoopbackAddress(), port())));
    Thread serving = new Thread(this::serve, "answers");
    serving.setDaemon(true);
    serving.start();
  }

  /// Returns the server, which gives these answers from now on.
  public static AnswerServer answering(List<byte[]> answers) {
    ONLY.answers = new Answers(answers);
    return ONLY;
  }

  /// Returns the server, which gives answers that are valid HTTP. A byte of 0x1e separates the
  /// answers in the input. Each answer begins with a byte that chooses the status, never one that
  /// makes a client retry; then follow lines of headers, an empty line and the body.
  public static AnswerServer structured(byte[] input) {
    return answering(
        Pattern.compile("\u001e")
            .splitAsStream(new String(input, StandardCharsets.ISO_8859_1))
            .limit(MAX_ANSWERS)
            .map(AnswerServer::answer)
            .toList());
  }

  private static byte[] answer(String text) {
    String rest = text.substring(Math.min(1, text.length()));
    int status = text.isEmpty() ? 404 : STATUSES[text.charAt(0) / 4 % STATUSES.length];
    int head = rest.indexOf("\n\n");
    String body = rest.substring(head < 0 ? 0 : head + 2);
    StringBuilder all = new StringBuilder("HTTP/1.1 " + status + " Any\r\n");
    rest.substring(0, Math.max(0, head))
        .lines()
        .filter(line -> line.matches("[A-Za-z-]+: [\\x20-\\x7e]*"))
        .filter(line -> !line.matches("(?i)(content-length|transfer-encoding|connection):.*"))
        .forEach(line -> all.append(line).append("\r\n"));
    all.append("Connection: close\r\nContent-Length: ").append(body.length()).append("\r\n\r\n");
    return (all + body).getBytes(StandardCharsets.ISO_8859_1);
  }

  /// Returns the server's port.
  public int port() {
    return door.getLocalPort();
  }

  private void serve() {
    while (true) {
      try (Socket client = door.accept()) {
        if (readRequest(client.getInputStream())) {
          client.getOutputStream().write(answers.next());
        }
      } catch (SocketException _) {
        // The client has closed the connection.
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private static boolean readRequest(InputStream in) throws IOException {
    int last = 0;
    for (int i = 0; i < MAX_REQUEST_BYTES; i++) {
      int next = in.read();
      if (next < 0) {
        return false;
      }
      last = last << 8 | next;
      if (last == ('\r' << 24 | '\n' << 16 | '\r' << 8 | '\n')) {
        return true;
      }
    }
    return false;
  }
}
