// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.natives.ipc.LocalSockets;
import dev.gantry.core.internal.store.FileErrors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Serves weights in memory to other processes of the same user, over a Unix socket. One thread runs [#run]; other
/// threads may call [#publish] and [#close].
public final class ResidentServer implements AutoCloseable {
  private static final int LOOK_MILLIS = 200;
  private static final int S_IFMT = 0xf000;
  private static final int S_IFSOCK = 0xc000;

  /// Errors of `accept` after which the waiting client can be accepted later.
  private static final Set<Errno> WANTS =
      EnumSet.of(Errno.EMFILE, Errno.ENFILE, Errno.ENOBUFS, Errno.ENOMEM);

  /// Errors of `accept` that mean that no client is waiting.
  private static final Set<Errno> GONE = EnumSet.of(Errno.EAGAIN, Errno.EINTR, Errno.ECONNABORTED);

  private static final Duration LONGEST_ANSWER = Duration.ofSeconds(10);

  /// A client that has not received its whole answer yet. The server keeps the image's memory
  /// until the client has.
  private record Answering(ResidentImage image, Frames.Answer answer, long deadline) {}

  private final Path path;

  /// The file whose lock gives this server the socket. Its open file description has the lock: closing another descriptor
  /// of the same file does not release it.
  private final int lockFile;

  private final int socket;
  private final Consumer<String> log;

  /// The clients that are being answered, by connection.
  private final Map<Integer, Answering> answering = new LinkedHashMap<>();

  /// The version that each client has, by connection.
  private final Map<Integer, Integer> readers = new LinkedHashMap<>();

  /// Whether the last client could not be accepted, for lack of descriptors or memory.
  private boolean full;

  private @Nullable ResidentImage current;
  private volatile boolean ended;

  private ResidentServer(Path path, int lockFile, int socket, Consumer<String> log) {
    this.path = path;
    this.lockFile = lockFile;
    this.socket = socket;
    this.log = log;
  }

  /// Returns the path of the socket at which this user's server of that name listens by default:
  /// in `$XDG_RUNTIME_DIR/gantry`, or else in `~/.cache/gantry`.
  public static Path defaultSocket(String name) {
    Path folder =
        Optional.ofNullable(System.getenv("XDG_RUNTIME_DIR"))
            .filter(text -> !text.isEmpty())
            .map(Path::of)
            .orElseGet(() -> Path.of(System.getProperty("user.home"), ".cache"));
    return folder.resolve("gantry").resolve(name + ".sock");
  }

  /// Begins to listen. The call makes a missing folder of the socket, for this user only, and
  /// replaces a socket that a killed server left behind.
  ///
  /// @param log receives a line for each client that connects or disconnects
  /// @throws MisuseException if a server listens at the path already, or the path is too long
  /// @throws TransferException if the folder or the socket cannot be made
  public static ResidentServer listen(Path socketPath, Consumer<String> log) {
    Path path = socketPath.toAbsolutePath();
    ResidentWeights.requireShort(path);
    Path folder = socketPath.getParent();
    if (folder != null) {
      Folders.makePrivate(folder);
    }
    return Cleanup.orUndo(
        () -> lock(path),
        lockFile ->
            Cleanup.orUndo(
                () -> bind(path),
                socket -> new ResidentServer(path, lockFile, socket, log),
                Libc.INSTANCE::close),
        Libc.INSTANCE::close);
  }

  private static int lock(Path path) {
    Path file = path.resolveSibling(path.getFileName() + ".lock");
    int flags = FileCalls.O_RDWR | FileCalls.O_CREAT;
    return Cleanup.orUndo(
        () ->
            Errno.require(
                FileCalls.retried(() -> Libc.INSTANCE.open(file, flags, 0600)), "open", file),
        opened -> {
          int locked = FileCalls.retried(() -> Libc.INSTANCE.lock(opened, FileCalls.F_WRLCK, 0, 1));
          if (locked == -Errno.EAGAIN.code() || locked == -Errno.EACCES.code()) {
            throw new MisuseException(
                "--socket must be one where no server listens (was "
                    + path
                    + ", where one does): name another, or end that one");
          }
          Errno.check(locked, "lock", file);
          return opened;
        },
        Libc.INSTANCE::close);
  }

  /// Makes the socket. The caller holds the lock, so no other live server uses the path.
  private static int bind(Path path) {
    requireSocket(path);
    Errno.check(Libc.INSTANCE.unlink(path), Errno.ENOENT, "unlink", path);
    return Cleanup.orUndo(
        () -> Errno.require(LocalSockets.serverSocket(), "socket", path),
        socket -> {
          Errno.check(LocalSockets.listen(socket, path), "bind", path);
          return socket;
        },
        Libc.INSTANCE::close);
  }

  /// Refuses to replace a file that is not a socket, since no server can have made that file.
  private static void requireSocket(Path path) {
    try {
      int mode = (int) Files.getAttribute(path, "unix:mode", LinkOption.NOFOLLOW_LINKS);
      if ((mode & S_IFMT) != S_IFSOCK) {
        throw new MisuseException(
            "--socket must name a socket or nothing (was " + path + ", which is not a socket)");
      }
    } catch (NoSuchFileException _) {
      // A missing socket will be made.
    } catch (IOException e) {
      throw FileErrors.of("stat", path.toString(), e);
    }
  }

  /// The location by which clients open the weights.
  public Location.Remote location() {
    return ResidentWeights.location(path);
  }

  /// Gives new clients this version from now on. The former version's memory is freed when its
  /// last client disconnects; the server closes its own image of that version when every client
  /// that is being answered has its answer.
  ///
  /// @param image the new version; this server owns it from now on
  public synchronized void publish(ResidentImage image) {
    if (ended) {
      image.close();
      return;
    }
    ResidentImage before = current;
    current = image;
    if (before != null) {
      giveUp(before);
    }
  }

  private void giveUp(ResidentImage image) {
    if (image == current) {
      return;
    }
    for (Answering one : answering.values()) {
      if (one.image() == image) {
        return;
      }
    }
    image.close();
  }

  /// The number of clients of each version.
  public synchronized Map<Integer, Integer> readers() {
    Map<Integer, Integer> counts = new TreeMap<>();
    readers.values().forEach(version -> counts.merge(version, 1, Integer::sum));
    return counts;
  }

  /// Serves clients until [#close] is called.
  ///
  /// @throws TransferException if the socket fails
  public void run() {
    while (!ended) {
      look(LOOK_MILLIS);
    }
  }

  /// Waits up to `milliseconds` for an event of the sockets, then answers new clients and notes
  /// which clients have left. The call never waits for one client. It calls `log` without holding
  /// the lock, since `log` may block.
  private void look(int milliseconds) {
    Set<Integer> told = new LinkedHashSet<>();
    int result = LocalSockets.poll(watched(), told, milliseconds);
    Errno.check(result, Errno.EINTR, "poll", path);
    List<String> lines = new ArrayList<>();
    synchronized (this) {
      if (ended) {
        return;
      }
      for (int one : told) {
        // A client that has its answer sends nothing more, so a readable connection has been
        // closed.
        if (readers.containsKey(one)) {
          leave(one, lines);
        } else if (answering.containsKey(one)) {
          answer(one, lines);
        }
      }
      for (int one : List.copyOf(answering.keySet())) {
        if (System.nanoTime() - Objects.requireNonNull(answering.get(one)).deadline() > 0) {
          drop(one, "a client did not read its answer", lines);
        }
      }
      if (told.contains(socket) || full) {
        accept(lines);
      }
    }
    lines.forEach(log);
  }

  private synchronized Map<Integer, Integer> watched() {
    Map<Integer, Integer> fds = new LinkedHashMap<>();
    readers.keySet().forEach(reader -> fds.put(reader, LocalSockets.POLLIN));
    answering.keySet().forEach(client -> fds.put(client, LocalSockets.POLLOUT));
    // While a client cannot be accepted, the socket is not polled, since it would end every wait
    // at once.
    if (!full) {
      fds.put(socket, LocalSockets.POLLIN);
    }
    return fds;
  }

  private void leave(int reader, List<String> lines) {
    Integer version = readers.remove(reader);
    Libc.INSTANCE.close(reader);
    lines.add("a client of version " + version + " left; " + readers.size() + " stay");
  }

  private void accept(List<String> lines) {
    int client = LocalSockets.accept(socket);
    if (client < 0) {
      refuse(-client, lines);
      return;
    }
    full = false;
    ResidentImage image = current;
    boolean begun = false;
    try {
      begun = image != null && begin(client, image);
    } finally {
      if (!begun) {
        Libc.INSTANCE.close(client);
      }
    }
    if (begun) {
      answer(client, lines);
    } else {
      lines.add(image == null ? "a client came too early" : "another user's process was refused");
    }
  }

  /// @return whether the client is this user's
  private boolean begin(int client, ResidentImage image) {
    if (LocalSockets.peerUser(client) != LocalSockets.user()) {
      return false;
    }
    Frames.Answer answer = new Frames.Answer(image.catalogue().toBytes(), image.fds());
    long deadline = System.nanoTime() + LONGEST_ANSWER.toNanos();
    answering.put(client, new Answering(image, answer, deadline));
    return true;
  }

  private void refuse(int code, List<String> lines) {
    Errno error = Errno.of(code).orElse(Errno.EIO);
    boolean wants = WANTS.contains(error);
    if (!wants && !GONE.contains(error)) {
      Errno.check(-code, "accept", path);
    }
    if (wants && !full) {
      lines.add("clients wait: " + Errno.failure(code).describe() + " (see ulimit -n)");
    }
    full = wants;
  }

  private void answer(int client, List<String> lines) {
    Answering one = Objects.requireNonNull(answering.get(client));
    try {
      if (!one.answer().send(client)) {
        return;
      }
    } catch (TransferException gone) {
      drop(client, "a client left before it had its answer: " + gone.getMessage(), lines);
      return;
    }
    int version = one.image().catalogue().version();
    readers.put(client, version);
    answering.remove(client);
    giveUp(one.image());
    lines.add("a client has version " + version + "; " + readers.size() + " now");
  }

  private void drop(int client, String reason, List<String> lines) {
    Answering one = Objects.requireNonNull(answering.remove(client));
    Libc.INSTANCE.close(client);
    giveUp(one.image());
    lines.add(reason);
  }

  /// Ends [#run], closes the server's images (clients keep their mappings), and removes the
  /// socket. A second call does nothing.
  @Override
  public synchronized void close() {
    if (ended) {
      return;
    }
    ended = true;
    int _ = Libc.INSTANCE.unlink(path);
    Libc.INSTANCE.close(socket);
    LocalSockets.closeAll(readers.keySet());
    readers.clear();
    LocalSockets.closeAll(answering.keySet());
    try {
      Cleanup.forEach(answering.values(), one -> one.image().close());
      answering.clear();
    } finally {
      if (current != null) {
        current.close();
      }
      Libc.INSTANCE.close(lockFile);
    }
  }
}
