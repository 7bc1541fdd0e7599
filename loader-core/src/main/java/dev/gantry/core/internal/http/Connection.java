// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.StandardSocketOptions;
import java.net.URI;
import java.net.UnknownHostException;
import java.net.http.HttpRequest;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import org.jspecify.annotations.Nullable;

/// A connection of HTTP/1.1 to a server, which answers one request after another. The bytes of an
/// answer's body are read from the kernel straight into the caller's buffer; with TLS they pass
/// through the heap. One thread at a time may use a connection, but any thread may call [#close],
/// which ends a call that is under way.
final class Connection implements Closeable {
  private static final int BUFFER_BYTES = 8 << 10;
  private static final int MAX_HEAD_BYTES = 64 << 10;

  /// A server, and the proxy through which it is reached.
  ///
  /// @param proxy the proxy that forwards requests; empty for none
  record Peer(boolean secure, String host, int port, Optional<InetSocketAddress> proxy) {
    /// Returns the server of an address, with the proxy that the JVM's [ProxySelector] names.
    static Peer of(URI address) {
      boolean secure = "https".equalsIgnoreCase(address.getScheme());
      int port = address.getPort() >= 0 ? address.getPort() : secure ? 443 : 80;
      ProxySelector selector = ProxySelector.getDefault();
      Optional<InetSocketAddress> proxy =
          selector == null
              ? Optional.empty()
              : selector.select(address).stream()
                  .limit(1)
                  .filter(one -> one.type() == Proxy.Type.HTTP)
                  .map(one -> (InetSocketAddress) one.address())
                  .findFirst();
      return new Peer(secure, address.getHost(), port, proxy);
    }

    private String authority() {
      return host + (port == (secure ? 443 : 80) ? "" : ":" + port);
    }
  }

  private final Peer peer;
  private final SocketChannel socket;
  private ReadableByteChannel in;
  private WritableByteChannel out;

  /// Bytes of the body that were received together with the answer's head, or with the length of a
  /// chunk.
  private final ByteBuffer ahead = ByteBuffer.allocate(BUFFER_BYTES).flip();

  private boolean staysOpen;
  private boolean chunked;

  /// The number of bytes of the body, or of its current chunk, that have not been read.
  private long left;

  private volatile long idleSinceNanos;

  /// The head of the last answer; null before the first.
  private @Nullable AnswerHead head;

  /// Makes a connection, which the first request opens.
  Connection(Peer peer) throws IOException {
    this.peer = peer;
    this.socket = SocketChannel.open();
    this.in = socket;
    this.out = socket;
  }

  Peer peer() {
    return peer;
  }

  private void connect() throws IOException {
    socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
    String host = peer.proxy().map(InetSocketAddress::getHostString).orElse(peer.host());
    int port = peer.proxy().map(InetSocketAddress::getPort).orElse(peer.port());
    InetSocketAddress target = new InetSocketAddress(host, port);
    if (target.isUnresolved()) {
      throw new UnknownHostException("unknown host " + host);
    }
    socket.socket().connect(target, (int) HttpStore.CONNECT.toMillis());
    if (!peer.secure()) {
      return;
    }
    if (peer.proxy().isPresent()) {
      String server = peer.host() + ":" + peer.port();
      write("CONNECT " + server + " HTTP/1.1\r\nHost: " + server + "\r\n\r\n");
      int status = readHead().statusCode();
      if (status / 100 != 2) {
        throw new IOException("the proxy refuses the connection with status " + status);
      }
    }
    secure();
  }

  /// Begins TLS. The server's certificate must state the server's name, and an authority that the
  /// JVM trusts must have issued it.
  private void secure() throws IOException {
    SSLSocket tls;
    try {
      tls =
          (SSLSocket)
              SSLContext.getDefault()
                  .getSocketFactory()
                  .createSocket(socket.socket(), peer.host(), peer.port(), true);
    } catch (NoSuchAlgorithmException e) {
      throw new IOException("no TLS: " + e.getMessage(), e);
    }
    SSLParameters parameters = tls.getSSLParameters();
    parameters.setEndpointIdentificationAlgorithm("HTTPS");
    tls.setSSLParameters(parameters);
    tls.startHandshake();
    in = Channels.newChannel(tls.getInputStream());
    out = Channels.newChannel(tls.getOutputStream());
  }

  /// Sends a request without a body, and reads the head of its answer. After a failure, the
  /// connection must be closed.
  ///
  /// @throws IOException if the connection fails, or the answer is not one of HTTP/1.1
  void ask(HttpRequest request) throws IOException {
    if (!socket.isConnected()) {
      connect();
    }
    URI uri = request.uri();
    boolean whole = !peer.secure() && peer.proxy().isPresent();
    StringBuilder text = new StringBuilder(request.method()).append(' ');
    text.append(whole ? "http://" + peer.authority() : "")
        .append(uri.getRawPath().isEmpty() ? "/" : uri.getRawPath())
        .append(uri.getRawQuery() == null ? "" : "?" + uri.getRawQuery())
        .append(" HTTP/1.1\r\nHost: ")
        .append(peer.authority())
        .append("\r\n");
    request
        .headers()
        .map()
        .forEach(
            (name, values) -> values.forEach(value -> text.append(name + ": " + value + "\r\n")));
    write(text.append("\r\n").toString());
    AnswerHead answer = readHead();
    while (answer.isInterim()) {
      answer = readHead();
    }
    head = answer;
    staysOpen = answer.staysOpen();
    chunked = answer.isChunked();
    left = chunked ? chunk() : answer.bodyBytes();
  }

  /// The head of the last answer.
  AnswerHead head() {
    return Objects.requireNonNull(head);
  }

  private void write(String text) throws IOException {
    ByteBuffer bytes = ByteBuffer.wrap(text.getBytes(StandardCharsets.ISO_8859_1));
    while (bytes.hasRemaining()) {
      int _ = out.write(bytes);
    }
  }

  private AnswerHead readHead() throws IOException {
    List<String> lines = new ArrayList<>();
    int bytes = 0;
    for (String line = line(); !line.isEmpty(); line = line()) {
      lines.add(line);
      bytes += line.length();
      if (bytes > MAX_HEAD_BYTES) {
        throw new IOException("the answer's headers are too long");
      }
    }
    if (lines.isEmpty()) {
      throw new IOException("the answer has no status");
    }
    return AnswerHead.of(lines);
  }

  private String line() throws IOException {
    StringBuilder line = new StringBuilder();
    while (line.length() <= MAX_HEAD_BYTES) {
      if (!ahead.hasRemaining()) {
        ahead.clear();
        int count;
        try {
          count = in.read(ahead);
        } finally {
          ahead.flip();
        }
        if (count < 0) {
          throw new EOFException("the server closed the connection");
        }
      }
      char next = (char) (ahead.get() & 0xff);
      if (next == '\n') {
        int end = line.length() - (line.toString().endsWith("\r") ? 1 : 0);
        return line.substring(0, end);
      }
      line.append(next);
    }
    throw new IOException("a line of the answer is too long");
  }

  /// Reads the length of the next chunk; after the last chunk, also the lines that follow it.
  private long chunk() throws IOException {
    String line = line();
    long length;
    try {
      length = Long.parseUnsignedLong(line.replaceFirst("[; ].*", ""), 16);
    } catch (NumberFormatException e) {
      throw new IOException("a chunk of the answer has no length", e);
    }
    if (length < 0) {
      throw new IOException("a chunk of the answer is too long");
    }
    if (length == 0) {
      chunked = false;
      while (!line.isEmpty()) {
        line = line();
      }
    }
    return length;
  }

  /// Reads the bytes of the answer's body that one read of the connection gives.
  ///
  /// @return the number of bytes; -1 at the end of the body, or of the connection
  int read(ByteBuffer target) throws IOException {
    if (left == 0) {
      return -1;
    }
    int limit = target.limit();
    target.limit(target.position() + (int) Math.min(left, target.remaining()));
    int count;
    try {
      if (ahead.hasRemaining()) {
        count = Math.min(ahead.remaining(), target.remaining());
        target.put(ahead.slice().limit(count));
        ahead.position(ahead.position() + count);
      } else {
        count = in.read(target);
      }
    } finally {
      target.limit(limit);
    }
    if (left != AnswerHead.UNTIL_CLOSED) {
      left -= Math.max(0, count);
      if (left == 0 && chunked) {
        if (!line().isEmpty()) {
          throw new IOException("a chunk of the answer is longer than it says");
        }
        left = chunk();
      }
    }
    return count;
  }

  /// Whether bytes of the body are missing, by the lengths that its head and chunks state.
  boolean hasMore() {
    return left > 0 && left != AnswerHead.UNTIL_CLOSED;
  }

  /// Skips the unread bytes of an answer, if all of them have been received.
  ///
  /// @return whether the connection can carry another request
  boolean endAnswer() {
    if (!chunked && left <= ahead.remaining()) {
      ahead.position(ahead.position() + (int) left);
      left = 0;
    }
    return staysOpen && !chunked && left == 0 && !ahead.hasRemaining() && socket.isOpen();
  }

  /// Records that this connection is not in use from now on.
  void idle() {
    idleSinceNanos = System.nanoTime();
  }

  long idleSinceNanos() {
    return idleSinceNanos;
  }

  @Override
  public void close() {
    try {
      socket.close();
    } catch (IOException _) {
      // The connection is closed already.
    }
  }
}
