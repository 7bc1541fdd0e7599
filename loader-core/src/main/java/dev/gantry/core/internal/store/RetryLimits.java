// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;

/// The limits of one request to a server.
///
/// @param attempts how often it is made at most, if its faults pass
/// @param pause the longest pause before the second attempt; before each later one it is four times as long
/// @param idle how long a server may bring less than [#LEAST_BYTES], before the first byte of an answer or between two
public record RetryLimits(int attempts, Duration pause, Duration idle) {
  /// The fewest bytes that an answer must bring within the time of `idle`: a slower one is cut
  /// off.
  public static final long LEAST_BYTES = 16 << 10;

  /// A server that asks for a longer wait is not asked again.
  static final Duration LONGEST_WAIT = Duration.ofSeconds(60);

  private static final int MAX_SHIFT = 20;
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(10);

  /// Five attempts within some ten seconds of pauses, and half a minute of patience.
  public static final RetryLimits DEFAULT =
      new RetryLimits(5, Duration.ofMillis(200), Duration.ofSeconds(30));

  /// The pause before the next attempt; empty if none follows, because the fault lasts, the server asks for too long a wait,
  /// or all attempts were made.
  ///
  /// @param made the attempts so far, 1 or more
  public Optional<Duration> pauseAfter(int made, RemoteFault fault) {
    if (!fault.isPassing() || made >= attempts || fault.waiting().compareTo(LONGEST_WAIT) > 0) {
      return Optional.empty();
    }
    Duration pause = pauseAfter(made);
    return Optional.of(pause.compareTo(fault.waiting()) > 0 ? pause : fault.waiting());
  }

  /// Between half of the limit and all of it, so that requests that failed together do not come back together.
  private Duration pauseAfter(int made) {
    long most = pause.toMillis() << Math.min(2 * (made - 1), MAX_SHIFT);
    most = Math.min(LONGEST_PAUSE.toMillis(), most);
    return Duration.ofMillis(most / 2 + ThreadLocalRandom.current().nextLong(most / 2 + 1));
  }
}
