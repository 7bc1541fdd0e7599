package dev.gantry.djl.internal.torch;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// What is to be run when libtorch lets go of wrapped memory. Native code carries a number, never a
/// reference; a number that was taken once is gone, so nothing is released twice. Thread-safe.
public final class Releases {
  private static final Logger LOG = LoggerFactory.getLogger(Releases.class);
  private static final AtomicLong NEXT = new AtomicLong(1);
  private static final ConcurrentHashMap<Long, Runnable> PENDING = new ConcurrentHashMap<>();

  private Releases() {}

  /// A number that was never used before.
  static long number() {
    return NEXT.getAndIncrement();
  }

  /// From here on the release belongs to the tensor. Called only once libtorch has the memory: a
  /// deleter that runs while the wrapping itself fails finds nothing, and the caller still owns
  /// what it brought.
  static void handOver(long number, Runnable release) {
    PENDING.put(number, release);
  }

  /// Runs the release, if it was handed over and has not run. Never throws: native frames lie
  /// below, and an exception that reaches them ends the JVM.
  static void run(long number) {
    Runnable release = PENDING.remove(number);
    if (release == null) {
      return;
    }
    try {
      release.run();
    } catch (Throwable failure) {
      // The one place where swallowing is right: there is no Java caller to tell.
      LOG.error("releasing the memory of a tensor failed", failure);
    }
  }

  /// Releases handed over and not yet run: wrapped memory that is still in use.
  public static int pending() {
    return PENDING.size();
  }
}
