// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.natives.ipc.LocalSockets;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/// A client's hold on one version of a server's weights: their descriptors, and the connection, which
/// tells the server that this process reads them. What was mapped stays when this is closed, and when the
/// server ends. Thread-safe.
public final class ResidentWeights implements AutoCloseable {
  /// Of locations: `gantry-resident:///run/user/1000/gantry/weights.sock`.
  public static final String SCHEME = "gantry-resident";

  private static final int ANSWER_SECONDS = 10;
  private static final int ECONNREFUSED = 111;
  private static final String NUMBERED = "held-";

  private static final AtomicLong LAST = new AtomicLong();
  private static final Map<String, ResidentWeights> HELD = new ConcurrentHashMap<>();

  private final Path socketPath;
  private final String number = NUMBERED + LAST.incrementAndGet();
  private final int socket;
  private final ResidentCatalogue catalogue;
  private final List<Integer> fds;
  private boolean closed;

  private ResidentWeights(
      Path socketPath, int socket, ResidentCatalogue catalogue, List<Integer> fds) {
    this.socketPath = socketPath;
    this.socket = socket;
    this.catalogue = catalogue;
    this.fds = fds;
    HELD.put(number, this);
  }

  /// Whether a location names weights of a server that are not held yet.
  public static boolean isServer(Location location) {
    return location instanceof Location.Remote remote
        && remote.scheme().equals(SCHEME)
        && !isHeldPath(remote);
  }

  /// Whether a location is a file of weights that are held.
  public static boolean isHeld(Location location) {
    return location instanceof Location.Remote remote
        && remote.scheme().equals(SCHEME)
        && isHeldPath(remote);
  }

  private static boolean isHeldPath(Location.Remote remote) {
    return Optional.ofNullable(remote.uri().getPath())
        .map(path -> path.contains("/" + NUMBERED))
        .orElse(false);
  }

  /// Takes hold of a server's weights, of the version that it has now.
  ///
  /// @throws TransferException if no server listens there, it is another user's, or it does not answer
  public static ResidentWeights hold(Location location) {
    Path path = socketPath(location);
    requireShort(path);
    int socket = LocalSockets.socket();
    requireWell("socket", path, socket);
    boolean held = false;
    try {
      int connected = LocalSockets.connect(socket, path);
      if (connected == -Errno.ENOENT.code() || connected == -ECONNREFUSED) {
        throw new TransferException(
            "connect",
            path.toString(),
            new Failure.Remote(
                0, "no server of resident weights listens there; start one: gantry serve-weights"));
      }
      requireWell("connect", path, connected);
      if (LocalSockets.peerUser(socket) != LocalSockets.user()) {
        throw new TransferException(
            "connect",
            path.toString(),
            new Failure.Remote(0, "the server is another user's; weights come only from your own"));
      }
      requireWell("setsockopt", path, LocalSockets.limitWaits(socket, ANSWER_SECONDS));
      Frames.Frame frame = Frames.receive(socket);
      ResidentWeights weights = of(path, socket, frame);
      held = true;
      return weights;
    } finally {
      if (!held) {
        Libc.INSTANCE.close(socket);
      }
    }
  }

  private static ResidentWeights of(Path path, int socket, Frames.Frame frame) {
    boolean whole = false;
    try {
      ResidentCatalogue catalogue = ResidentCatalogue.parse(frame.text());
      if (catalogue.descriptors() != frame.fds().size()) {
        throw Frames.refused("the server's catalogue does not fit its descriptors");
      }
      ResidentWeights weights = new ResidentWeights(path, socket, catalogue, frame.fds());
      whole = true;
      return weights;
    } catch (IOException e) {
      throw Frames.refused(String.valueOf(e.getMessage()));
    } finally {
      if (!whole) {
        frame.fds().forEach(Libc.INSTANCE::close);
      }
    }
  }

  /// The socket that a location names.
  static Path socketPath(Location location) {
    String path =
        location instanceof Location.Remote remote ? remote.uri().getPath() : location.toString();
    if (path == null || !path.startsWith("/") || path.length() < 2) {
      throw new MisuseException(
          location
              + ": resident weights are named by their socket's absolute path, as in"
              + " gantry-resident:///run/user/1000/gantry/weights.sock");
    }
    return Path.of(path);
  }

  static void requireShort(Path socket) {
    if (socket.toString().getBytes(StandardCharsets.UTF_8).length > LocalSockets.MOST_PATH_BYTES) {
      throw new MisuseException(
          "the socket's path must have at most "
              + LocalSockets.MOST_PATH_BYTES
              + " bytes (was "
              + socket
              + ")");
    }
  }

  static void requireWell(String operation, Path path, int result) {
    if (result < 0) {
      throw new TransferException(operation, path.toString(), Errno.failure(-result));
    }
  }

  /// The location of such a socket.
  public static Location.Remote location(Path socket) {
    try {
      return new Location.Remote(
          new URI(SCHEME, "", socket.toAbsolutePath().toString(), null, null));
    } catch (URISyntaxException e) {
      throw new MisuseException("no socket's path: " + socket + ": " + e.getMessage());
    }
  }

  /// The file or folder of these weights, to be opened as any other.
  public Location entry() {
    return file(catalogue.entry());
  }

  private Location file(String name) {
    try {
      return new Location.Remote(
          new URI(SCHEME, "", socketPath + "/" + number + "/" + name, null, null));
    } catch (URISyntaxException e) {
      throw new MisuseException("no file name: " + name + ": " + e.getMessage());
    }
  }

  List<Location> files() {
    return catalogue.parts().stream().map(part -> file(part.name())).toList();
  }

  public ResidentCatalogue catalogue() {
    return catalogue;
  }

  /// The weights that hold a file or folder below [#entry]; empty if they were closed, or it is none.
  static Optional<ResidentWeights> holding(Location location) {
    if (location instanceof Location.Remote remote
        && remote.scheme().equals(SCHEME)
        && isHeldPath(remote)) {
      String[] parts = remote.uri().getPath().split("/", -1);
      return Optional.ofNullable(HELD.get(parts[parts.length - 2]));
    }
    return Optional.empty();
  }

  /// A file with descriptors of its own, which live on when this is closed; empty if there is none of
  /// this name.
  ///
  /// @throws TransferException if the process may open no more files
  synchronized Optional<ResidentFile> open(Location location) {
    if (closed) {
      return Optional.empty();
    }
    int at = 0;
    for (ResidentPart part : catalogue.parts()) {
      if (part.name().equals(location.fileName())) {
        List<Integer> own = new ArrayList<>();
        boolean whole = false;
        try {
          for (int i = 0; i < part.descriptors(); i++) {
            int copy = LocalSockets.duplicate(fds.get(at + i));
            requireWell("dup", socketPath, copy);
            own.add(copy);
          }
          whole = true;
        } finally {
          if (!whole) {
            own.forEach(Libc.INSTANCE::close);
          }
        }
        return Optional.of(
            new ResidentFile(
                location,
                new ResidentFile.Identity(socketPath, number, part.name()),
                part,
                catalogue.device(),
                own));
      }
      at += part.descriptors();
    }
    return Optional.empty();
  }

  /// Idempotent.
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      HELD.remove(number);
      fds.forEach(Libc.INSTANCE::close);
      Libc.INSTANCE.close(socket);
    }
  }
}
