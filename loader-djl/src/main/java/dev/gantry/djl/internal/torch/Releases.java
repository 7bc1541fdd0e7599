// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Callbacks that run when libtorch drops wrapped memory. Native code holds only a callback's
/// number, and no reference. Running a callback removes its number, so nothing is released twice.
/// Thread-safe.
public final class Releases {
  private static final Logger LOG = LoggerFactory.getLogger(Releases.class);
  private static final AtomicLong NEXT = new AtomicLong(1);
  private static final ConcurrentHashMap<Long, Runnable> PENDING = new ConcurrentHashMap<>();

  private Releases() {}

  /// Returns a number that was never used before.
  static long number() {
    return NEXT.getAndIncrement();
  }

  /// Hands the release over to the tensor. Call this only after libtorch has taken the memory. If
  /// the wrapping fails before that, the deleter finds no release under the number, and the caller
  /// still owns the memory.
  static void handOver(long number, Runnable release) {
    PENDING.put(number, release);
  }

  /// Runs the release if it was handed over and has not run yet. Never throws: this is called from
  /// native frames, and an exception that reached them would end the JVM.
  static void run(long number) {
    Runnable release = PENDING.remove(number);
    if (release == null) {
      return;
    }
    try {
      release.run();
    } catch (Throwable failure) {
      // The failure is logged, because no Java caller could catch it.
      LOG.error("releasing the memory of a tensor failed", failure);
    }
  }

  /// Returns how many releases were handed over and have not run yet: each is wrapped memory still
  /// in use.
  public static int pending() {
    return PENDING.size();
  }
}
