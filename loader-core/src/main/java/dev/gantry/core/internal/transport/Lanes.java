package dev.gantry.core.internal.transport;

import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.PendingReads;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.Residency;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// What one reader reads with: buffers, from the first read on that is staged, and an account of
/// what went which way. For one thread.
final class Lanes implements AutoCloseable {
  private final @Nullable StagedPath staged;
  private final boolean fallsBack;
  private final TransferCounter counter;
  private final PendingReads pending;
  private TransferPath.@Nullable Lane staging;

  /// @param staged the only one that routes name, or null where nothing is staged
  /// @param fallsBack whether a file is staged that cuFile refuses in mid-way, which is an error
  ///     otherwise
  /// @param requestsAtOnce of remote files, that this reader has under way
  Lanes(
      @Nullable StagedPath staged, boolean fallsBack, TransferCounter counter, int requestsAtOnce) {
    this.staged = staged;
    this.fallsBack = fallsBack;
    this.counter = counter;
    this.pending = new PendingReads(requestsAtOnce);
  }

  /// Carries out one read by the path that suits the bytes. They may still be on their way when
  /// this returns: see [Target#ordered] and [#drain].
  ///
  /// @return false where it is still to be done, since all buffers are in use: see [#awaitBuffers]
  boolean read(Route route, Read read, Target target) {
    Residency residency = route.file().residency(read.fileOffset(), read.length());
    boolean direct = residency != Residency.HOT;
    TransferPath path = route.path(direct);
    if (path instanceof HostPath && !route.file().isLocal()) {
      start(route.file(), read, target);
      return true;
    }
    TransferPath.Lane lane = lane(path);
    if (lane == null) {
      return false;
    }
    boolean went;
    try {
      went = lane.read(route.file(), read, target, direct);
    } catch (TransferException e) {
      if (!(path instanceof CuFilePath) || !fallsBack || staged == null) {
        throw e;
      }
      route.fallBack(staged, e);
      return read(route, read, target);
    }
    counter.add(Route.kind(path), read.length(), went, residency == Residency.UNKNOWN);
    return true;
  }

  /// Leaves a remote file's read under way, and goes on to the next one.
  private void start(SourceFile file, Read read, Target target) {
    pending.start(
        file,
        HostPath.place(read, target),
        read.fileOffset(),
        read.required(),
        () -> counter.add(Transport.HOST, read.length(), false, false));
  }

  private TransferPath.@Nullable Lane lane(TransferPath path) {
    return switch (path) {
      case CuFilePath cuFile -> new CuFilePath.CuFileLane(cuFile);
      case HostPath _ -> new HostPath.HostLane();
      case StagedPath _ -> {
        awaitBuffers(() -> false);
        yield staging;
      }
    };
  }

  /// Waits for buffers, unless this reader has some.
  ///
  /// @param wanted whether to wait, as of [dev.gantry.core.internal.memory.StagingPool.Share#take]
  void awaitBuffers(BooleanSupplier wanted) {
    if (staging == null && staged != null) {
      staging = staged.openLane(wanted);
    }
  }

  /// Gives the buffers back where another load waits for some and has fewer.
  void giveWay() {
    if (staging != null && staged != null && staged.buffers().owesOne()) {
      close();
    }
  }

  /// Waits until what was read of remote files has arrived, or is staged.
  void awaitRemote() {
    pending.drain();
  }

  /// Waits until everything read has arrived.
  void drain() {
    awaitRemote();
    if (staging != null) {
      staging.drain();
    }
  }

  /// Waits for copies under way, whatever became of them, and gives the buffers back.
  @Override
  public void close() {
    pending.close();
    TransferPath.Lane closing = staging;
    staging = null;
    if (closing != null) {
      closing.close();
    }
  }
}
