// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.internal.http.Connection.Peer;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.IdleWatch;
import dev.gantry.core.internal.store.RemoteFault;
import java.io.IOException;
import java.net.http.HttpRequest;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// The open connections of a store. Connections that are not in use are kept open for some
/// seconds. Thread-safe.
final class Connections implements AutoCloseable {
  private static final long KEPT_NANOS = TimeUnit.SECONDS.toNanos(30);

  private final Set<Connection> all = new HashSet<>();

  /// The connections that are not in use, the most recently used first.
  private final Deque<Connection> idle = new ArrayDeque<>();

  private final BooleanSupplier look = this::look;
  private boolean closed;

  /// Sends a request over a connection that is open and not in use, or over a new one.
  ///
  /// @param attempt receives the connection, which it closes if the attempt is stopped
  /// @return the connection, which has read the head of the answer; the caller passes it to
  ///     [#giveBack]
  Connection ask(HttpRequest request, RangeAttempt attempt) throws IOException {
    Peer peer = Peer.of(request.uri());
    Connection kept = takeKept(peer);
    if (kept != null) {
      try {
        return ask(kept, request, attempt);
      } catch (IOException _) {
        // The server may have closed the connection while it was not in use.
      }
    }
    return ask(open(peer), request, attempt);
  }

  private Connection ask(Connection connection, HttpRequest request, RangeAttempt attempt)
      throws IOException {
    boolean answered = false;
    try {
      attempt.uses(connection);
      connection.ask(request);
      answered = true;
      return connection;
    } finally {
      if (!answered) {
        drop(connection);
      }
    }
  }

  private synchronized @Nullable Connection takeKept(Peer peer) {
    for (Connection one : idle) {
      if (one.peer().equals(peer)) {
        idle.remove(one);
        return one;
      }
    }
    return null;
  }

  private synchronized Connection open(Peer peer) throws IOException {
    if (closed) {
      throw sessionClosed();
    }
    Connection made = new Connection(peer);
    all.add(made);
    return made;
  }

  static RemoteFault sessionClosed() {
    return RemoteFault.lasting(0, "the session is closed");
  }

  private synchronized void drop(Connection connection) {
    all.remove(connection);
    connection.close();
  }

  /// Takes back a connection, and keeps it open if it can carry another request.
  synchronized void giveBack(Connection used) {
    if (closed || !used.endAnswer()) {
      drop(used);
    } else {
      used.idle();
      idle.addFirst(used);
      IdleWatch.watch(look);
    }
  }

  private synchronized boolean look() {
    while (!idle.isEmpty() && System.nanoTime() - idle.getLast().idleSinceNanos() > KEPT_NANOS) {
      drop(idle.removeLast());
    }
    return !idle.isEmpty();
  }

  synchronized boolean isClosed() {
    return closed;
  }

  /// Closes all connections, including connections in use.
  @Override
  public synchronized void close() {
    closed = true;
    Cleanup.forEach(all, Connection::close);
    all.clear();
    idle.clear();
  }
}
