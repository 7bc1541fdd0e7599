// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import java.io.IOException;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.util.Set;

/// Why one attempt at a request to a server failed, and whether another one may succeed.
public final class RemoteFault extends IOException {
  private static final long serialVersionUID = 1L;

  /// The statuses after which another attempt may succeed.
  private static final Set<Integer> PASSING = Set.of(408, 429, 500, 502, 503, 504);

  private final boolean passing;
  private final int status;
  private final Duration wait;

  /// @param passing whether another attempt may succeed
  /// @param status the answer's status; 0 if the fault has no status
  /// @param reason the reason in words
  /// @param wait how long the server asks to wait before the next attempt
  private RemoteFault(boolean passing, int status, String reason, Duration wait) {
    super(reason);
    this.passing = passing;
    this.status = status;
    this.wait = wait;
  }

  /// A fault after which another attempt may succeed, such as a lost connection.
  public static RemoteFault passing(String reason) {
    return new RemoteFault(true, 0, reason, Duration.ZERO);
  }

  /// A fault that every attempt would meet again.
  public static RemoteFault lasting(int status, String reason) {
    return new RemoteFault(false, status, reason, Duration.ZERO);
  }

  /// The fault of an answer whose status is not a success.
  ///
  /// @param retryAfter the value of `Retry-After`: seconds or a date; empty if the answer has none
  public static RemoteFault of(boolean passing, int status, String reason, String retryAfter) {
    return new RemoteFault(passing, status, reason, waiting(retryAfter));
  }

  /// Whether another attempt may succeed after this status.
  public static boolean isPassing(int status) {
    return PASSING.contains(status);
  }

  private static Duration waiting(String retryAfter) {
    if (retryAfter.matches("\\d{1,9}")) {
      return Duration.ofSeconds(Long.parseLong(retryAfter));
    }
    try {
      Instant until = DateTimeFormatter.RFC_1123_DATE_TIME.parse(retryAfter, Instant::from);
      Duration wait = Duration.between(Instant.now(), until);
      return wait.isNegative() ? Duration.ZERO : wait;
    } catch (DateTimeException _) {
      return Duration.ZERO;
    }
  }

  boolean isPassing() {
    return passing;
  }

  public int status() {
    return status;
  }

  Duration waiting() {
    return wait;
  }

  public String reason() {
    return String.valueOf(getMessage());
  }
}
