// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import java.util.Arrays;

/// How many requests to one server are under way at once, as its link needs them. Thread-safe.
///
/// The window grows with each request that took little longer than the fastest of its size, because the link has more
/// to give then, and shrinks with each that took much longer, because requests wait for one another. So it comes to rest
/// near twice the link's rate × the latency of a request that waits for no other.
public final class LinkWindow {
  /// Fills 2 GB/s if a request of 8 MiB takes a tenth of a second, and asks a slow server for little.
  static final int FIRST = 32;

  /// A request that took this many times as long as the fastest is no reason to send fewer.
  private static final int SHRINKS = 4;

  private static final int GROWS = 2;

  /// A request that takes so many times as long as others of its size is slow.
  private static final int SLOW = 4;

  /// No request is slow that takes less: a second one would take as long.
  private static final long LEAST_SLOW_NANOS = 250_000_000;

  /// How many requests of a size show what is usual.
  private static final int SHOWING = 8;

  private double requests = FIRST;

  /// The time of the fastest request, by the binary logarithm of its size, in nanoseconds.
  private final long[] fastest = new long[Long.SIZE];

  /// The time that requests take of late, by the binary logarithm of their size, in nanoseconds.
  private final double[] usual = new double[Long.SIZE];

  private final int[] seen = new int[Long.SIZE];

  LinkWindow() {
    Arrays.fill(fastest, Long.MAX_VALUE / SHRINKS);
  }

  /// The number of requests at once.
  ///
  /// @param most the most that suit the file
  synchronized int requests(int most) {
    return Math.min(most, (int) requests);
  }

  /// Notes that a request has brought its bytes.
  ///
  /// @param bytes the request's size
  /// @param nanos from the request's start to its last byte
  /// @param full whether another request would have had to wait
  /// @param most the most requests at once that suit the file
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
    // Requests of an odd size are compared with larger ones, or else with the time of several
    // smaller ones.
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
