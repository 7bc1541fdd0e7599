// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives.ipc;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import dev.gantry.core.internal.natives.Libc;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// The C library's calls for Unix sockets that pass descriptors, and for memory files (`memfd`),
/// on 64-bit Linux. All methods return the result of the C function, or the negated `errno`.
public final class LocalSockets {
  /// Makes [#poll] wait for bytes to read, or for a connection to accept.
  public static final int POLLIN = 1;

  /// Makes [#poll] wait for space in the send buffer.
  public static final int POLLOUT = 4;

  /// The longest path that a Unix socket takes, in bytes.
  public static final int MAX_PATH_BYTES = 107;

  /// The most descriptors in one message: the kernel's limit is 253.
  public static final int MAX_DESCRIPTORS = 250;

  /// The seals of a memory file. They forbid further seals, a change of the size, and writes other
  /// than to private mappings.
  public static final int SEALED = 1 | 2 | 4 | 8;

  private static final int AF_UNIX = 1;
  private static final int SOCK_STREAM = 1;
  private static final int SOCK_CLOEXEC = 0x80000;
  private static final int SOCK_NONBLOCK = 0x800;
  private static final int SOL_SOCKET = 1;
  private static final int SO_PEERCRED = 17;
  private static final int SO_RCVTIMEO = 20;
  private static final int SO_SNDTIMEO = 21;
  private static final int SCM_RIGHTS = 1;
  private static final int MSG_NOSIGNAL = 0x4000;
  private static final int MSG_CMSG_CLOEXEC = 0x40000000;
  private static final int MFD_CLOEXEC_ALLOW_SEALING = 1 | 2;
  private static final int F_ADD_SEALS = 1033;
  private static final int F_GET_SEALS = 1034;
  private static final int F_DUPFD_CLOEXEC = 1030;
  private static final int BACKLOG = 128;

  /// Sizes of `struct cmsghdr` and `struct msghdr`, and of a `struct pollfd`.
  private static final int CONTROL_HEADER_BYTES = 16;

  private static final int MESSAGE_BYTES = 56;
  private static final int POLL_BYTES = 8;
  private static final int MAX_SENT_BYTES = 64 << 10;

  // int socket(int domain, int type, int protocol)
  private static final MethodHandle SOCKET = Libc.function("socket");
  // int bind(int fd, const struct sockaddr *addr, socklen_t len)
  private static final MethodHandle BIND = Libc.function("bind");
  // int listen(int fd, int backlog)
  private static final MethodHandle LISTEN = Libc.function("listen");
  // int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
  private static final MethodHandle ACCEPT = Libc.function("accept4");
  // int connect(int fd, const struct sockaddr *addr, socklen_t len)
  private static final MethodHandle CONNECT = Libc.function("connect");
  // ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
  private static final MethodHandle SENDMSG = Libc.function("sendmsg");
  // ssize_t recvmsg(int fd, struct msghdr *message, int flags)
  private static final MethodHandle RECVMSG = Libc.function("recvmsg");
  // int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
  private static final MethodHandle GETSOCKOPT = Libc.function("getsockopt");
  // int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
  private static final MethodHandle SETSOCKOPT = Libc.function("setsockopt");
  // int poll(struct pollfd *fds, nfds_t count, int milliseconds)
  private static final MethodHandle POLL = Libc.function("poll");
  // int chmod(const char *path, mode_t mode)
  private static final MethodHandle CHMOD = Libc.function("chmod");
  // int memfd_create(const char *name, unsigned int flags)
  private static final MethodHandle MEMFD_CREATE = Libc.function("memfd_create");
  // int fcntl(int fd, int cmd, ...)
  private static final MethodHandle FCNTL = Libc.function("fcntl");
  // uid_t getuid(void)
  private static final MethodHandle GETUID = Libc.function("getuid");

  private LocalSockets() {}

  /// Makes a client's socket, whose calls wait as long as [#limitWaits] allows.
  public static int socket() {
    return call(SOCKET, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, 0);
  }

  /// Makes a server's socket, whose calls return `EAGAIN` instead of waiting.
  public static int serverSocket() {
    return call(SOCKET, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0);
  }

  /// Binds and listens. Only the owner may open the socket.
  public static int listen(int fd, Path path) {
    int bound = withAddress(BIND, fd, path);
    if (bound < 0) {
      return bound;
    }
    try (Arena arena = Arena.ofConfined()) {
      int changed = call(CHMOD, arena.allocateFrom(path.toString()).address(), 0600, 0, 0);
      return changed < 0 ? changed : call(LISTEN, fd, BACKLOG, 0, 0);
    }
  }

  public static int connect(int fd, Path path) {
    return withAddress(CONNECT, fd, path);
  }

  /// Accepts a connection, whose calls return `EAGAIN` instead of waiting.
  public static int accept(int fd) {
    return call(ACCEPT, fd, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
  }

  private static int withAddress(MethodHandle function, int fd, Path path) {
    byte[] name = path.toString().getBytes(StandardCharsets.UTF_8);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment address = arena.allocate(2 + MAX_PATH_BYTES + 1);
      address.set(JAVA_SHORT, 0, (short) AF_UNIX);
      MemorySegment.copy(name, 0, address, JAVA_BYTE, 2, name.length);
      return call(function, fd, address.address(), address.byteSize(), 0);
    }
  }

  /// Returns the number of the user of the process at the other end.
  public static int peerUser(int fd) {
    try (Arena arena = Arena.ofConfined()) {
      // struct ucred: pid, uid, gid.
      MemorySegment credentials = arena.allocate(12, 4);
      MemorySegment length = arena.allocateFrom(JAVA_INT, 12);
      int result =
          Libc.intCall(
              GETSOCKOPT, fd, SOL_SOCKET, SO_PEERCRED, credentials.address(), length.address());
      return result < 0 ? result : credentials.get(JAVA_INT, 4);
    }
  }

  /// Returns the number of this process's user.
  public static int user() {
    return call(GETUID, 0, 0, 0, 0);
  }

  /// Limits the time of connecting, reads and writes: longer ones end with `EAGAIN`.
  public static int limitWaits(int fd, Duration longest) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment time = arena.allocate(16, 8);
      time.set(JAVA_LONG, 0, longest.toSeconds());
      time.set(JAVA_LONG, 8, longest.toNanosPart() / 1000);
      int result = Libc.intCall(SETSOCKOPT, fd, SOL_SOCKET, SO_RCVTIMEO, time.address(), 16);
      return result < 0
          ? result
          : Libc.intCall(SETSOCKOPT, fd, SOL_SOCKET, SO_SNDTIMEO, time.address(), 16);
    }
  }

  /// Waits until one of the descriptors is ready.
  ///
  /// @param fds the event to wait for, [#POLLIN] or [#POLLOUT], by descriptor
  /// @param told receives the descriptors that are ready, or whose connection has ended
  /// @return the number of these descriptors
  public static int poll(Map<Integer, Integer> fds, Set<Integer> told, int milliseconds) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate((long) POLL_BYTES * fds.size(), 4);
      long at = 0;
      for (Map.Entry<Integer, Integer> one : fds.entrySet()) {
        all.set(JAVA_INT, at, one.getKey());
        all.set(JAVA_SHORT, at + 4, one.getValue().shortValue());
        at += POLL_BYTES;
      }
      int result = call(POLL, all.address(), fds.size(), milliseconds, 0);
      for (at = 0; result > 0 && at < all.byteSize(); at += POLL_BYTES) {
        if (all.get(JAVA_SHORT, at + 6) != 0) {
          told.add(all.get(JAVA_INT, at));
        }
      }
      return result;
    }
  }

  /// Sends bytes from `from` on, and descriptors with the first of them.
  ///
  /// @param fds at most [#MAX_DESCRIPTORS]
  /// @return the number of bytes sent
  public static int send(int fd, byte[] bytes, int from, List<Integer> fds) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment sent = arena.allocate(Math.min(bytes.length - from, MAX_SENT_BYTES));
      MemorySegment.copy(bytes, from, sent, JAVA_BYTE, 0, (int) sent.byteSize());
      MemorySegment control = control(arena, fds.size());
      control.set(JAVA_LONG, 0, CONTROL_HEADER_BYTES + 4L * fds.size());
      control.set(JAVA_INT, 8, SOL_SOCKET);
      control.set(JAVA_INT, 12, SCM_RIGHTS);
      for (int i = 0; i < fds.size(); i++) {
        control.set(JAVA_INT, CONTROL_HEADER_BYTES + 4L * i, fds.get(i));
      }
      MemorySegment message = message(arena, sent, fds.isEmpty() ? MemorySegment.NULL : control);
      return call(SENDMSG, fd, message.address(), MSG_NOSIGNAL, 0);
    }
  }

  /// Receives bytes, and the descriptors that came with them.
  ///
  /// @param fds receives the descriptors, which the caller closes
  /// @return the number of bytes received; 0 at the end of the connection
  public static int receive(int fd, MemorySegment bytes, List<Integer> fds) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment control = control(arena, MAX_DESCRIPTORS);
      MemorySegment message = message(arena, bytes, control);
      int count = call(RECVMSG, fd, message.address(), MSG_CMSG_CLOEXEC, 0);
      long controlBytes = message.get(JAVA_LONG, 40);
      if (count >= 0 && controlBytes >= CONTROL_HEADER_BYTES) {
        long length = control.get(JAVA_LONG, 0);
        if (control.get(JAVA_INT, 8) == SOL_SOCKET && control.get(JAVA_INT, 12) == SCM_RIGHTS) {
          for (long at = CONTROL_HEADER_BYTES; at + 4 <= length; at += 4) {
            fds.add(control.get(JAVA_INT, at));
          }
        }
      }
      return count;
    }
  }

  private static MemorySegment control(Arena arena, int fds) {
    return arena.allocate((CONTROL_HEADER_BYTES + 4L * fds + 7) & -8, 8);
  }

  /// Makes a `struct msghdr`, whose offsets are: iov 16, iovlen 24, control 32, controllen 40.
  private static MemorySegment message(Arena arena, MemorySegment bytes, MemorySegment control) {
    MemorySegment vector = arena.allocate(16, 8);
    vector.set(JAVA_LONG, 0, bytes.address());
    vector.set(JAVA_LONG, 8, bytes.byteSize());
    MemorySegment message = arena.allocate(MESSAGE_BYTES, 8);
    message.set(JAVA_LONG, 16, vector.address());
    message.set(JAVA_LONG, 24, 1);
    message.set(JAVA_LONG, 32, control.address());
    message.set(JAVA_LONG, 40, control.byteSize());
    return message;
  }

  /// Makes a memory file, which can be sealed. The kernel frees the file when no process has a
  /// descriptor or a mapping of it.
  public static int memoryFile(String name) {
    try (Arena arena = Arena.ofConfined()) {
      long text = arena.allocateFrom(name).address();
      return call(MEMFD_CREATE, text, MFD_CLOEXEC_ALLOW_SEALING, 0, 0);
    }
  }

  /// Seals a memory file, which must no longer be mapped for writing.
  public static int seal(int fd) {
    return call(FCNTL, fd, F_ADD_SEALS, SEALED, 0);
  }

  /// Whether a memory file has the seals of [#seal], so that its size and its bytes cannot change.
  public static boolean isSealed(int fd) {
    int seals = call(FCNTL, fd, F_GET_SEALS, 0, 0);
    return seals >= 0 && (seals & SEALED) == SEALED;
  }

  /// Closes descriptors. This needs no heap.
  public static void closeAll(Iterable<Integer> fds) {
    for (int fd : fds) {
      int _ = Libc.INSTANCE.close(fd);
    }
  }

  /// Returns a second descriptor of the same file.
  public static int duplicate(int fd) {
    return call(FCNTL, fd, F_DUPFD_CLOEXEC, 0, 0);
  }

  private static int call(MethodHandle function, long a, long b, long c, long d) {
    return Libc.intCall(function, a, b, c, d, 0);
  }
}
