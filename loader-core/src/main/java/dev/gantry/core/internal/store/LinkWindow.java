// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import java.util.Arrays;

/// Decides how many requests to one server are under way at once, from the measured times of
/// requests. Thread-safe.
///
/// The window grows after each request that took little longer than the fastest request of its
/// size, because the link is not full then. It shrinks after each request that took much longer,
/// because requests wait for one another then. Thus it settles near twice the product of the
/// link's rate and the latency of a single request.
public final class LinkWindow {
  /// The first and least window. It fills a link of 2 GB/s if a request of 8 MiB takes a tenth of
  /// a second, and does not flood a slow server.
  static final int FIRST = 32;

  /// The window shrinks after a request that took more than this many times as long as the
  /// fastest.
  private static final int SHRINKS = 4;

  private static final int GROWS = 2;

  /// A request is slow if it takes this many times as long as is usual for its size.
  private static final int SLOW = 4;

  /// A request that takes less than this never counts as slow, because a second request would take
  /// as long.
  private static final long LEAST_SLOW_NANOS = 250_000_000;

  /// How many requests of a size are needed to know the usual time.
  private static final int SHOWING = 8;

  private double requests = FIRST;

  /// The time of the fastest request, by the binary logarithm of its size, in nanoseconds.
  private final long[] fastest = new long[Long.SIZE];

  /// The moving average of the times of requests, by the binary logarithm of their size, in
  /// nanoseconds.
  private final double[] usual = new double[Long.SIZE];

  private final int[] seen = new int[Long.SIZE];

  LinkWindow() {
    Arrays.fill(fastest, Long.MAX_VALUE / SHRINKS);
  }

  /// The number of requests that may be under way at once.
  ///
  /// @param most the most requests at once that the file's store allows
  synchronized int requests(int most) {
    return Math.min(most, (int) requests);
  }

  /// Adjusts the window after a request has delivered all of its bytes.
  ///
  /// @param bytes the request's size
  /// @param nanos from the request's start to its last byte
  /// @param full whether as many requests were under way as the window allows
  /// @param most the most requests at once that the file's store allows
  synchronized void ended(long bytes, long nanos, boolean full, int most) {
    int size = size(bytes);
    seen[size] = Math.min(SHOWING, seen[size] + 1);
    usual[size] += (nanos - usual[size]) / seen[size];
    fastest[size] = Math.min(fastest[size], Math.max(1, nanos));
    if (full && requests < most && nanos < GROWS * fastest[size]) {
      requests++;
    } else if (nanos > SHRINKS * fastest[size]) {
      requests = Math.max(FIRST, requests - 0.5);
    }
  }

  private static int size(long bytes) {
    return Long.SIZE - 1 - Long.numberOfLeadingZeros(Math.max(1, bytes));
  }

  /// How long a request must take to count as slow, in nanoseconds.
  ///
  /// @param bytes the request's size
  synchronized long slowNanos(long bytes) {
    int size = size(bytes);
    // If requests of this size are too few, the usual time of a larger size is taken, or else that
    // of a smaller size times the ratio of the sizes.
    for (int larger = size; larger < Long.SIZE; larger++) {
      if (seen[larger] == SHOWING) {
        return slow(usual[larger]);
      }
    }
    for (int smaller = size - 1; smaller >= 0; smaller--) {
      if (seen[smaller] == SHOWING) {
        return slow(usual[smaller] * (1L << (size - smaller)));
      }
    }
    return Long.MAX_VALUE;
  }

  private static long slow(double usual) {
    return Math.max(LEAST_SLOW_NANOS, (long) (SLOW * usual));
  }
}
