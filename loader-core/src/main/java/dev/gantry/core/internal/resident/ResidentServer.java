// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.natives.ipc.LocalSockets;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Gives weights that are in memory to the processes of one user, over a Unix socket. One thread runs
/// [#run]; other threads may [#publish] and [#close].
public final class ResidentServer implements AutoCloseable {
  private static final int LOOK_MILLIS = 200;
  private static final int ANSWER_SECONDS = 10;

  private final Path path;
  private final FileChannel lockFile;
  private final FileLock lock;
  private final int socket;
  private final Consumer<String> log;

  /// By connection, the version that the client has.
  private final Map<Integer, Integer> readers = new LinkedHashMap<>();

  private @Nullable ResidentImage current;
  private volatile boolean ended;

  private ResidentServer(
      Path path, FileChannel lockFile, FileLock lock, int socket, Consumer<String> log) {
    this.path = path;
    this.lockFile = lockFile;
    this.lock = lock;
    this.socket = socket;
    this.log = log;
  }

  /// Where a server of this user listens if it is not told: in `$XDG_RUNTIME_DIR/gantry`, or else in
  /// `~/.cache/gantry`.
  public static Path defaultSocket(String name) {
    Path folder =
        Optional.ofNullable(System.getenv("XDG_RUNTIME_DIR"))
            .filter(text -> !text.isEmpty())
            .map(Path::of)
            .orElseGet(() -> Path.of(System.getProperty("user.home"), ".cache"));
    return folder.resolve("gantry").resolve(name + ".sock");
  }

  /// Listens. The socket's folder is made if it is not there, for this user only, and a socket that a
  /// server left behind when it was killed is replaced.
  ///
  /// @param log is told of clients that come and go, a line each
  /// @throws MisuseException if a server listens there already, or the path is too long
  /// @throws TransferException if the folder or the socket cannot be made
  public static ResidentServer listen(Path socketPath, Consumer<String> log) {
    Path path = socketPath.toAbsolutePath();
    ResidentWeights.requireShort(path);
    makeFolder(path);
    try {
      FileChannel lockFile =
          FileChannel.open(
              path.resolveSibling(path.getFileName() + ".lock"),
              java.util.Set.of(StandardOpenOption.CREATE, StandardOpenOption.WRITE),
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
      return Cleanup.orUndo(
          () -> {
            FileLock lock = lock(lockFile, path);
            return new ResidentServer(path, lockFile, lock, bind(path), log);
          },
          () -> close(lockFile));
    } catch (IOException e) {
      throw failed("open", path, e);
    }
  }

  private static void makeFolder(Path path) {
    Path folder = path.getParent();
    if (folder != null && !Files.isDirectory(folder)) {
      try {
        Path above = folder.getParent();
        if (above != null) {
          Files.createDirectories(above);
        }
        Files.createDirectory(
            folder,
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      } catch (FileAlreadyExistsException _) {
        // Another server made it meanwhile.
      } catch (IOException e) {
        throw failed("mkdir", folder, e);
      }
    }
  }

  private static FileLock lock(FileChannel file, Path path) {
    try {
      FileLock lock = file.tryLock();
      if (lock != null) {
        return lock;
      }
    } catch (OverlappingFileLockException _) {
      // It is this process that serves there.
    } catch (IOException e) {
      throw failed("lock", path, e);
    }
    throw new MisuseException(
        "--socket must be one where no server listens (was "
            + path
            + ", where one does): name another, or end that one");
  }

  /// The lock is held, so no live server has the socket.
  private static int bind(Path path) {
    int removed = Libc.INSTANCE.unlink(path);
    if (removed != -Errno.ENOENT.code()) {
      ResidentWeights.requireWell("unlink", path, removed);
    }
    int socket = LocalSockets.socket();
    ResidentWeights.requireWell("socket", path, socket);
    int listening = LocalSockets.listen(socket, path);
    if (listening < 0) {
      Libc.INSTANCE.close(socket);
    }
    ResidentWeights.requireWell("bind", path, listening);
    return socket;
  }

  private static TransferException failed(String operation, Path path, IOException e) {
    return new TransferException(
        operation, path.toString(), new Failure.Remote(0, String.valueOf(e.getMessage())));
  }

  /// How clients name the weights.
  public Location.Remote location() {
    return ResidentWeights.location(path);
  }

  /// New clients get this version from now on. The one before goes when its last reader does: this server
  /// gives up its own hold on it.
  ///
  /// @param image owned by this server from now on
  public synchronized void publish(ResidentImage image) {
    ResidentImage before = current;
    current = image;
    if (before != null) {
      before.close();
    }
  }

  /// How many clients have each version.
  public synchronized Map<Integer, Integer> readers() {
    Map<Integer, Integer> counts = new TreeMap<>();
    readers.values().forEach(version -> counts.merge(version, 1, Integer::sum));
    return counts;
  }

  /// Serves until [#close].
  ///
  /// @throws TransferException if the socket fails
  public void run() {
    while (!ended) {
      look(LOOK_MILLIS);
    }
  }

  /// Answers new clients and sees which ones left, waiting up to `milliseconds` for the first of these.
  private void look(int milliseconds) {
    List<Integer> fds = new ArrayList<>(List.of(socket));
    synchronized (this) {
      fds.addAll(readers.keySet());
    }
    int[] told = LocalSockets.poll(fds, milliseconds);
    synchronized (this) {
      if (ended) {
        return;
      }
      for (int i = 1; i < told.length; i++) {
        // Clients say nothing: whatever there is, is their end.
        if (told[i] != 0) {
          leave(fds.get(i));
        }
      }
      if (told[0] != 0) {
        accept();
      }
    }
  }

  private void leave(int reader) {
    Integer version = readers.remove(reader);
    Libc.INSTANCE.close(reader);
    log.accept("a client of version " + version + " left; " + readers.size() + " stay");
  }

  private void accept() {
    int client = LocalSockets.accept(socket);
    if (client < 0) {
      if (client == -Errno.EMFILE.code() || client == -Errno.ENFILE.code()) {
        log.accept("a client was refused: this process may open no more files (ulimit -n)");
      }
      return;
    }
    ResidentImage image = current;
    if (image == null || LocalSockets.peerUser(client) != LocalSockets.user()) {
      Libc.INSTANCE.close(client);
      log.accept(image == null ? "a client came too early" : "another user's process was refused");
      return;
    }
    try {
      ResidentWeights.requireWell(
          "setsockopt", path, LocalSockets.limitWaits(client, ANSWER_SECONDS));
      Frames.send(client, image.catalogue().toJson(), image.fds());
      readers.put(client, image.catalogue().version());
      log.accept(
          "a client has version " + image.catalogue().version() + "; " + readers.size() + " now");
    } catch (TransferException gone) {
      Libc.INSTANCE.close(client);
      log.accept("a client left before it had its answer: " + gone.getMessage());
    }
  }

  /// Ends [#run], gives up the memory, which clients keep, and removes the socket. Idempotent.
  @Override
  public synchronized void close() {
    if (ended) {
      return;
    }
    ended = true;
    int _ = Libc.INSTANCE.unlink(path);
    Libc.INSTANCE.close(socket);
    readers.keySet().forEach(Libc.INSTANCE::close);
    readers.clear();
    if (current != null) {
      current.close();
      current = null;
    }
    try {
      lock.release();
    } catch (IOException _) {
      // Closing the file gives it up, too.
    }
    close(lockFile);
  }

  private static void close(FileChannel file) {
    try {
      file.close();
    } catch (IOException _) {
      // Nothing was written.
    }
  }
}
