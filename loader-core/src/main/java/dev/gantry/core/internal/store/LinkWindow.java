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

  private double requests = FIRST;

  /// The time of the fastest request, by the binary logarithm of its size, in nanoseconds.
  private final long[] fastest = new long[Long.SIZE];

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
    int size = Long.SIZE - 1 - Long.numberOfLeadingZeros(Math.max(1, bytes));
    fastest[size] = Math.min(fastest[size], Math.max(1, nanos));
    if (full && requests < most && nanos < GROWS * fastest[size]) {
      requests++;
    } else if (nanos > SHRINKS * fastest[size]) {
      requests = Math.max(FIRST, requests - 0.5);
    }
  }
}
