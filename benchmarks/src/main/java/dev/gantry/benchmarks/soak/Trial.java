// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.Device;
import ai.djl.ndarray.NDManager;
import dev.gantry.core.Cancellation;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.FaultyFileCalls.Shortens;
import dev.gantry.testing.Sessions;
import java.util.Random;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// One operation with its fault, which occurs at a random moment.
///
/// Not thread-safe. After it is closed, no fault occurs any more.
final class Trial implements AutoCloseable {
  private static final int MOST_DELAY_MICROS = 20_000;

  private final Fault fault;
  private final GantrySession session;
  private final @Nullable FaultyFileCalls calls;
  private final Cancellation cancellation = new Cancellation();
  private final AtomicInteger untilThrow;
  private final Thread thread = Thread.currentThread();
  private boolean over;

  /// @param healthy the session to use if the fault does not concern the session
  Trial(Fault fault, GantrySession healthy, ScheduledExecutorService timer, Random random) {
    this.fault = fault;
    this.untilThrow =
        new AtomicInteger(fault == Fault.CONSUMER ? 1 + random.nextInt(4) : Integer.MAX_VALUE);
    this.calls = fault == Fault.FILES ? failing(random.nextLong()) : null;
    this.session =
        calls != null
            ? Sessions.over(calls)
            : fault == Fault.SESSION ? GantrySession.open() : healthy;
    Runnable action =
        switch (fault) {
          case CANCEL -> cancellation::cancel;
          case INTERRUPT -> thread::interrupt;
          case SESSION -> session::close;
          default -> null;
        };
    if (action != null) {
      var _ =
          timer.schedule(
              () -> unlessOver(action), random.nextInt(MOST_DELAY_MICROS), TimeUnit.MICROSECONDS);
    }
  }

  private static FaultyFileCalls failing(long seed) {
    return new FaultyFileCalls(FileCalls.ofPlatform())
        .seeded(Function.OPEN, seed, 60, new Fails(Errno.EMFILE))
        .seeded(Function.STAT, seed, 60, new Fails(Errno.EIO))
        .seeded(Function.PREAD, seed, 60, new Fails(Errno.EIO))
        .seeded(Function.PREAD, seed, 4, new Shortens(4096))
        .seeded(Function.PWRITE, seed, 60, new Fails(Errno.ENOSPC))
        .seeded(Function.PWRITE, seed, 4, new Shortens(4096))
        .seeded(Function.FALLOCATE, seed, 30, new Fails(Errno.ENOSPC))
        .seeded(Function.FTRUNCATE, seed, 30, new Fails(Errno.EIO))
        .seeded(Function.FSYNC, seed, 30, new Fails(Errno.EIO))
        .seeded(Function.RENAME, seed, 30, new Fails(Errno.EIO))
        .seeded(Function.MKDIR, seed, 30, new Fails(Errno.ENOSPC))
        .seeded(Function.CLOSE, seed, 60, new Fails(Errno.EIO));
  }

  private void unlessOver(Runnable action) {
    if (fault == Fault.INTERRUPT) {
      synchronized (this) {
        if (!over) {
          action.run();
        }
      }
    } else {
      action.run();
    }
  }

  Fault fault() {
    return fault;
  }

  GantrySession session() {
    return session;
  }

  Cancellation cancellation() {
    return cancellation;
  }

  /// Throws when it is told the chosen time, if the fault is that of a consumer.
  ProgressListener progress() {
    return (_, _) -> consume();
  }

  /// Throws at the chosen call, if the fault is that of a consumer.
  void consume() {
    if (fault == Fault.CONSUMER && untilThrow.decrementAndGet() == 0) {
      throw new Fault.ThrownOnPurpose();
    }
  }

  /// Returns a manager for the loaded arrays. If the fault is a closed manager, it is closed
  /// already.
  NDManager manager(Device device) {
    NDManager manager = NDManager.newBaseManager(device, "PyTorch");
    boolean _ = closes(manager);
    return manager;
  }

  /// Closes a manager if that is the fault.
  ///
  /// @return whether that is the fault
  boolean closes(NDManager manager) {
    if (fault == Fault.MANAGER) {
      manager.close();
      return true;
    }
    return false;
  }

  /// Returns how many system calls failed, or did less than was asked for, by injection.
  int failedCalls() {
    return calls == null ? 0 : calls.faults();
  }

  @Override
  public void close() {
    synchronized (this) {
      over = true;
    }
    if (fault == Fault.INTERRUPT) {
      boolean _ = Thread.interrupted();
    }
    if (fault == Fault.FILES || fault == Fault.SESSION) {
      session.close();
    }
  }
}
