// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;

/// The limits of one request to a server.
///
/// @param attempts the most attempts
/// @param pause the longest pause before the second attempt; before each later attempt, the
///     longest pause is four times as long as before
/// @param idle a period in which a server must deliver at least [#LEAST_BYTES], until its answer
///     is complete; the wait for the first byte counts, too
public record RetryLimits(int attempts, Duration pause, Duration idle) {
  /// The fewest bytes that an answer must deliver within the time of `idle`. An attempt with a
  /// slower answer is ended.
  public static final long LEAST_BYTES = 16 << 10;

  /// The longest wait that a server may ask for. If it asks for a longer wait, no attempt follows.
  static final Duration LONGEST_WAIT = Duration.ofSeconds(60);

  private static final int MAX_SHIFT = 20;
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(10);

  /// The default: five attempts, whose pauses are some ten seconds together, and an `idle` of half
  /// a minute.
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

  /// The pause is random, between half of the longest pause and all of it, so that requests that
  /// failed at the same time are not repeated at the same time.
  private Duration pauseAfter(int made) {
    long most = pause.toMillis() << Math.min(2 * (made - 1), MAX_SHIFT);
    most = Math.min(LONGEST_PAUSE.toMillis(), most);
    return Duration.ofMillis(most / 2 + ThreadLocalRandom.current().nextLong(most / 2 + 1));
  }
}
