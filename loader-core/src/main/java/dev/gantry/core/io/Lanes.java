package dev.gantry.core.io;

import dev.gantry.core.TransferException;
import dev.gantry.core.memory.Slab;
import dev.gantry.core.plan.ReadPlan.Read;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// One reader's lanes, one for each path that it has taken. For one thread.
final class Lanes implements AutoCloseable {
  private final Map<TransferPath, TransferPath.Lane> lanes = new HashMap<>();
  private final @Nullable StagedPath fallback;
  private final Account account;

  /// @param fallback where a file goes that cuFile refuses in mid-way, or null where that is an
  ///     error
  Lanes(@Nullable StagedPath fallback, Account account) {
    this.fallback = fallback;
    this.account = account;
  }

  /// Carries out one read by the path that suits the bytes. They may still be on their way when
  /// this returns: see [Target#ordered] and [#drain].
  void read(Route route, Read read, Target target) {
    boolean direct = route.file().prefersDirect(read.fileOffset(), read.length());
    TransferPath path = route.path(direct);
    boolean went;
    try {
      went = lane(path).read(route.file(), read, target, direct);
    } catch (TransferException e) {
      if (!(path instanceof CuFilePath) || fallback == null) {
        throw e;
      }
      route.fallBack(fallback, e);
      path = fallback;
      went = lane(path).read(route.file(), read, target, direct);
    }
    // What cuFile reads through the page cache passes the CPU, whatever it does with the rest.
    PathKind kind = path instanceof CuFilePath && !went ? PathKind.COMPAT : Route.kind(path);
    account.add(kind, read.length(), went);
  }

  private TransferPath.Lane lane(TransferPath path) {
    return switch (path) {
      // One a file, and with nothing of its own: not kept, since files come and go.
      case CuFilePath cuFile -> cuFile.openLane();
      case HostPath _, StagedPath _ -> lanes.computeIfAbsent(path, TransferPath::openLane);
    };
  }

  /// Waits until everything read has arrived.
  void drain() {
    lanes.values().forEach(TransferPath.Lane::drain);
  }

  /// Waits for copies under way, whatever became of them, and frees the buffers.
  @Override
  public void close() {
    Slab.runAll(lanes.values().stream().<Runnable>map(lane -> lane::close).toList());
  }
}
