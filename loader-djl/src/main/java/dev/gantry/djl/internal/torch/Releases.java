// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Callbacks that run when libtorch drops wrapped memory. Native code holds a number, never a
/// reference; running a callback removes its number, so nothing is released twice. Thread-safe.
public final class Releases {
  private static final Logger LOG = LoggerFactory.getLogger(Releases.class);
  private static final AtomicLong NEXT = new AtomicLong(1);
  private static final ConcurrentHashMap<Long, Runnable> PENDING = new ConcurrentHashMap<>();

  private Releases() {}

  /// A number that was never used before.
  static long number() {
    return NEXT.getAndIncrement();
  }

  /// Makes the release the tensor's. Call it only when libtorch has the memory: a deleter that runs while the
  /// wrapping itself fails finds nothing, and the caller still owns the memory.
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
      // Logs the failure, because no Java caller could catch it.
      LOG.error("releasing the memory of a tensor failed", failure);
    }
  }

  /// Releases handed over and not yet run: wrapped memory that is still in use.
  public static int pending() {
    return PENDING.size();
  }
}
