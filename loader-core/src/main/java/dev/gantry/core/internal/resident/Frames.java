// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.ipc.LocalSockets;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/// The protocol between a server of resident weights and its clients. All numbers are little
/// endian. When a client connects, the server answers at once, with one frame: the magic number (8
/// bytes); the protocol's version, the number of descriptors and the catalogue's size in bytes (4
/// bytes each); one byte for every 250 descriptors, which are sent along with that byte; and the
/// catalogue ([ResidentCatalogue#toBytes]). The connection stays open for as long as the client
/// uses the weights.
final class Frames {
  /// Version 1 named a GPU by its ordinal, and version 2 wrote the catalogue as JSON.
  static final int PROTOCOL = 3;

  /// The text `GNTRYRES`.
  private static final long MAGIC = 0x5345525952544e47L;

  private static final int HEADER_BYTES = 20;
  private static final int MAX_CATALOGUE_BYTES = 64 << 20;
  private static final int MAX_DESCRIPTORS = 100_000;

  private Frames() {}

  @SuppressWarnings("ArrayRecordComponent")
  record Frame(byte[] catalogue, List<Integer> fds) {}

  /// An answer that is being sent to a client, at the pace at which the client reads.
  static final class Answer {
    @SuppressWarnings("ArrayRecordComponent")
    private record Piece(byte[] bytes, List<Integer> fds) {}

    private final Deque<Piece> left = new ArrayDeque<>();

    /// The number of bytes of the first piece that have been sent.
    private int done;

    /// @param fds the descriptors to send, which the caller keeps open until the whole answer was
    ///     sent
    Answer(byte[] catalogue, List<Integer> fds) {
      ByteBuffer header = ByteBuffer.allocate(HEADER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
      header.putLong(MAGIC).putInt(PROTOCOL).putInt(fds.size()).putInt(catalogue.length);
      left.add(new Piece(header.array(), List.of()));
      for (int from = 0; from < fds.size(); from += LocalSockets.MAX_DESCRIPTORS) {
        int to = Math.min(fds.size(), from + LocalSockets.MAX_DESCRIPTORS);
        left.add(new Piece(new byte[1], List.copyOf(fds.subList(from, to))));
      }
      if (catalogue.length > 0) {
        // A piece without bytes is left out: the client does not wait for it, and may have closed
        // the connection.
        left.add(new Piece(catalogue, List.of()));
      }
    }

    /// Sends as many bytes as the socket accepts now.
    ///
    /// @return whether the whole answer was sent
    /// @throws TransferException if the client has closed the connection
    boolean send(int socket) {
      while (!left.isEmpty()) {
        Piece piece = left.getFirst();
        int count =
            LocalSockets.send(
                socket, piece.bytes(), done, done == 0 ? piece.fds() : List.<Integer>of());
        if (count == -Errno.EAGAIN.code()) {
          return false;
        }
        Errno.check(count, Errno.EINTR, "sendmsg", "resident weights");
        done += Math.max(0, count);
        if (done == piece.bytes().length) {
          left.removeFirst();
          done = 0;
        }
      }
      return true;
    }
  }

  /// @param server the path of the server's socket, for messages
  /// @param deadline the time by `System.nanoTime` at which the whole frame must have arrived
  /// @throws TransferException if the server has closed the connection, does not answer, or speaks
  ///     another protocol; every received descriptor is closed then
  static Frame receive(Path server, int socket, long deadline) {
    List<Integer> fds = new ArrayList<>();
    return Cleanup.orUndo(
        () -> receive(server, socket, deadline, fds), () -> LocalSockets.closeAll(fds));
  }

  /// @param fds the list to which received descriptors are added
  private static Frame receive(Path server, int socket, long deadline, List<Integer> fds) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment header =
          receiveAll(server, socket, arena.allocate(HEADER_BYTES, 8), fds, deadline);
      int count = header.get(JAVA_INT, 12);
      int length = header.get(JAVA_INT, 16);
      if (header.get(JAVA_LONG, 0) != MAGIC) {
        throw refused(server, "what listens there is not a server of resident weights");
      }
      if (header.get(JAVA_INT, 8) != PROTOCOL) {
        throw refused(
            server,
            "the server speaks version "
                + header.get(JAVA_INT, 8)
                + " of the protocol, and this client "
                + PROTOCOL
                + ": start both with the same version of Gantry");
      }
      if (length < 0 || length > MAX_CATALOGUE_BYTES || count < 0 || count > MAX_DESCRIPTORS) {
        throw refused(server, "the server's answer is not as its protocol says");
      }
      for (int from = 0; from < count; from += LocalSockets.MAX_DESCRIPTORS) {
        receiveAll(server, socket, arena.allocate(1), fds, deadline);
      }
      MemorySegment body = arena.allocate(Math.max(1, length)).asSlice(0, length);
      byte[] catalogue = receiveAll(server, socket, body, fds, deadline).toArray(JAVA_BYTE);
      if (fds.size() != count) {
        throw refused(
            server,
            fds.size()
                + " of "
                + count
                + " descriptors came: this process may open too few files (ulimit -n)");
      }
      return new Frame(catalogue, fds);
    }
  }

  private static MemorySegment receiveAll(
      Path server, int socket, MemorySegment bytes, List<Integer> fds, long deadline) {
    long done = 0;
    while (done < bytes.byteSize()) {
      int count = LocalSockets.receive(socket, bytes.asSlice(done), fds);
      if (count == -Errno.EAGAIN.code() || System.nanoTime() - deadline > 0) {
        throw refused(server, "the server does not answer in time");
      }
      if (count == 0) {
        throw refused(server, "the server closed the connection");
      }
      Errno.check(count, Errno.EINTR, "recvmsg", server);
      done += Math.max(0, count);
    }
    return bytes;
  }

  static TransferException refused(Path server, String reason) {
    return new TransferException("connect", server.toString(), new Failure.Remote(0, reason));
  }
}
