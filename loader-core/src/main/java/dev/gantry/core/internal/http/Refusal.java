// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import java.io.IOException;
import java.time.Duration;

/// Says that an answer is not the range that was asked for.
final class Refusal extends IOException {
  private static final long serialVersionUID = 1L;

  private final boolean passing;
  private final int status;
  private final Duration wait;

  /// @param passing whether another attempt may succeed
  /// @param status the answer's status; 0 where the status is not to blame
  /// @param reason says why, in words
  Refusal(boolean passing, int status, String reason) {
    this(passing, status, reason, Duration.ZERO);
  }

  /// @param wait how long the server asks to wait before the next attempt
  Refusal(boolean passing, int status, String reason, Duration wait) {
    super(reason);
    this.passing = passing;
    this.status = status;
    this.wait = wait;
  }

  boolean isPassing() {
    return passing;
  }

  int status() {
    return status;
  }

  Duration waiting() {
    return wait;
  }

  String reason() {
    return String.valueOf(getMessage());
  }
}
