// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.natives.ipc.CudaSharing;
import dev.gantry.core.internal.natives.ipc.LocalSockets;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// A client's handle of one version of a server's weights. It owns the weights' descriptors, and
/// the connection that tells the server that this process uses the weights. Mappings stay valid
/// when the handle is closed, and when the server ends. Thread-safe.
public final class ResidentWeights implements AutoCloseable {
  /// The scheme of locations, such as `gantry-resident:///run/user/1000/gantry/weights.sock`.
  public static final String SCHEME = "gantry-resident";

  private static final Duration LONGEST_WAIT = Duration.ofSeconds(10);

  /// The prefix of the authority in the location of a file of held weights; a server's location
  /// has no authority.
  private static final String NUMBERED = "held-";

  private static final AtomicLong LAST = new AtomicLong();
  private static final Map<String, ResidentWeights> HELD = new ConcurrentHashMap<>();

  private final Path socketPath;
  private final String number = NUMBERED + LAST.incrementAndGet();
  private final int socket;
  private final ResidentCatalogue catalogue;
  private final List<Integer> fds;
  private final Object deviceLock = new Object();

  /// The weights' device; null until [#device] is first called.
  private @Nullable Device device;

  private boolean closed;

  private ResidentWeights(
      Path socketPath, int socket, ResidentCatalogue catalogue, List<Integer> fds) {
    this.socketPath = socketPath;
    this.socket = socket;
    this.catalogue = catalogue;
    this.fds = fds;
    HELD.put(number, this);
  }

  /// Whether a location names a server, rather than a file of weights that this process holds.
  public static boolean isServer(Location location) {
    return location instanceof Location.Remote remote
        && remote.scheme().equals(SCHEME)
        && !isHeld(location);
  }

  /// Whether a location names a file of weights that this process holds.
  public static boolean isHeld(Location location) {
    return number(location).isPresent();
  }

  /// Returns the number of the held weights in a location; empty if the location has no such
  /// number.
  private static Optional<String> number(Location location) {
    return location instanceof Location.Remote remote && remote.scheme().equals(SCHEME)
        ? Optional.ofNullable(remote.uri().getAuthority())
            .filter(authority -> authority.startsWith(NUMBERED))
        : Optional.empty();
  }

  /// Connects to a server and receives the descriptors of the current version of its weights.
  ///
  /// @throws TransferException if no server listens at the location, or the server is another
  ///     user's or does not answer
  public static ResidentWeights hold(Location location) {
    return hold(location, LONGEST_WAIT);
  }

  /// @param longest the longest time to connect, and again the longest time to receive the answer
  static ResidentWeights hold(Location location, Duration longest) {
    Path path = socketPath(location);
    requireShort(path);
    return Cleanup.orUndo(
        () -> Errno.require(LocalSockets.socket(), "socket", path),
        socket -> hold(path, socket, longest),
        Libc.INSTANCE::close);
  }

  private static ResidentWeights hold(Path path, int socket, Duration longest) {
    Errno.check(LocalSockets.limitWaits(socket, longest), "setsockopt", path);
    connect(socket, path);
    if (LocalSockets.peerUser(socket) != LocalSockets.user()) {
      throw Frames.refused(path, "the server is another user's; weights come only from your own");
    }
    return Cleanup.orUndo(
        () -> Frames.receive(path, socket, System.nanoTime() + longest.toNanos()),
        frame -> of(path, socket, frame),
        frame -> LocalSockets.closeAll(frame.fds()));
  }

  private static void connect(int socket, Path path) {
    int connected = FileCalls.retried(() -> LocalSockets.connect(socket, path));
    if (connected == -Errno.ENOENT.code() || connected == -Errno.ECONNREFUSED.code()) {
      throw Frames.refused(
          path, "no server of resident weights listens there; start one: gantry serve-weights");
    }
    if (connected == -Errno.EAGAIN.code()) {
      throw Frames.refused(path, "the server takes no more clients in time");
    }
    Errno.check(connected, "connect", path);
  }

  private static ResidentWeights of(Path path, int socket, Frames.Frame frame) {
    try {
      ResidentCatalogue catalogue = ResidentCatalogue.parse(frame.catalogue());
      if (catalogue.descriptors() != frame.fds().size()) {
        throw Frames.refused(path, "the server's catalogue does not fit its descriptors");
      }
      int at = 0;
      for (ResidentPart part : catalogue.parts()) {
        requireFile(path, part, frame.fds().get(at));
        at += part.descriptors();
      }
      return new ResidentWeights(path, socket, catalogue, frame.fds());
    } catch (IOException e) {
      throw Frames.refused(path, String.valueOf(e.getMessage()));
    }
  }

  /// Requires that the memory file has its whole size and cannot shrink: reading past the end of a mapped file would
  /// end this process.
  private static void requireFile(Path path, ResidentPart part, int fd) {
    if (!LocalSockets.isSealed(fd) || Libc.INSTANCE.stat(fd).size() < part.hostBytes()) {
      throw Frames.refused(
          path,
          "the server's memory of " + part.name() + " is shorter than it says, or may change");
    }
  }

  /// Returns the path of the socket that a location names.
  static Path socketPath(Location location) {
    String path =
        location instanceof Location.Remote remote ? remote.uri().getPath() : location.toString();
    boolean host =
        location instanceof Location.Remote remote && remote.uri().getAuthority() != null;
    if (host || path == null || !path.startsWith("/") || path.length() < 2) {
      throw new MisuseException(
          location
              + ": resident weights are named by their socket's absolute path, as in"
              + " gantry-resident:///run/user/1000/gantry/weights.sock");
    }
    return Path.of(path);
  }

  static void requireShort(Path socket) {
    if (socket.toString().getBytes(StandardCharsets.UTF_8).length > LocalSockets.MAX_PATH_BYTES) {
      throw new MisuseException(
          "the socket's path must have at most "
              + LocalSockets.MAX_PATH_BYTES
              + " bytes (was "
              + socket
              + ")");
    }
  }

  /// Returns the location of the server at a socket.
  public static Location.Remote location(Path socket) {
    try {
      return new Location.Remote(
          new URI(SCHEME, "", socket.toAbsolutePath().toString(), null, null));
    } catch (URISyntaxException e) {
      throw new MisuseException("no socket's path: " + socket + ": " + e.getMessage());
    }
  }

  /// The file or folder of these weights, which can be opened like any other.
  public Location entry() {
    return file(catalogue.entry());
  }

  private Location file(String name) {
    try {
      return new Location.Remote(new URI(SCHEME, number, socketPath + "/" + name, null, null));
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

  /// Whether the tensors lie in a GPU's memory; [#device] says which.
  public boolean areOnGpu() {
    return !catalogue.gpu().isEmpty();
  }

  /// The device on which the tensors lie, with its ordinal in this process.
  ///
  /// @throws DeviceUnavailableException if this process does not see the server's GPU
  public Device device() {
    synchronized (deviceLock) {
      if (device == null) {
        device = areOnGpu() ? seen(catalogue.gpu()) : Device.HOST;
      }
      return device;
    }
  }

  private Device seen(String gpu) {
    String subject = location(socketPath) + " lies on " + gpu;
    CudaDriver driver =
        CudaDriver.load()
            .orElseThrow(reason -> new DeviceUnavailableException(subject + ": " + reason));
    return IntStream.range(0, driver.deviceCount())
        .filter(ordinal -> CudaSharing.uuid(ordinal).equals(gpu))
        .mapToObj(Device.Cuda::new)
        .findFirst()
        .orElseThrow(() ->
            new DeviceUnavailableException(
                subject
                    + ", which this process does not see: CUDA_VISIBLE_DEVICES or the container"
                    + " leaves it out"));
  }

  /// Returns the held weights that a location belongs to; empty if the weights were closed, or the
  /// location belongs to none.
  static Optional<ResidentWeights> holding(Location location) {
    return number(location).map(HELD::get);
  }

  /// Opens a file with descriptors of its own, which stay open when these weights are closed. The
  /// result is empty if there is no file of this name, or these weights are closed.
  ///
  /// @throws TransferException if the process may open no more files
  synchronized Optional<ResidentFile> open(Location location) {
    if (closed) {
      return Optional.empty();
    }
    int at = 0;
    for (ResidentPart part : catalogue.parts()) {
      if (part.name().equals(location.fileName())) {
        List<Integer> held = fds.subList(at, at + part.descriptors());
        ResidentFile.Identity identity = new ResidentFile.Identity(socketPath, number, part.name());
        return Cleanup.orUndo(
            () -> duplicates(held),
            own -> Optional.of(new ResidentFile(location, identity, part, this::device, own)),
            LocalSockets::closeAll);
      }
      at += part.descriptors();
    }
    return Optional.empty();
  }

  private List<Integer> duplicates(List<Integer> held) {
    List<Integer> own = new ArrayList<>();
    return Cleanup.orUndo(
        () -> {
          held.forEach(fd -> own.add(Errno.require(LocalSockets.duplicate(fd), "dup", socketPath)));
          return own;
        },
        () -> LocalSockets.closeAll(own));
  }

  /// Closes the descriptors and the connection. A second call does nothing.
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      HELD.remove(number);
      LocalSockets.closeAll(fds);
      Libc.INSTANCE.close(socket);
    }
  }
}
