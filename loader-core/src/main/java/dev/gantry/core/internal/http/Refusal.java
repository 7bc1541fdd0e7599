// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import java.io.IOException;
import java.time.Duration;

/// Says that an answer is not the range that was asked for.
final class Refusal extends IOException {
  private static final long serialVersionUID = 1L;

  /// What to do about a refusal.
  enum Kind {
    /// Ask again.
    PASSING,
    /// Fail.
    FINAL,
    /// There is nothing to read.
    EMPTY_FILE
  }

  private final Kind kind;
  private final int status;
  private final Duration wait;

  /// @param status the answer's status; 0 where the status is not to blame
  /// @param reason says why, in words
  Refusal(Kind kind, int status, String reason) {
    this(kind, status, reason, Duration.ZERO);
  }

  /// @param wait how long the server asks to wait before the next attempt
  Refusal(Kind kind, int status, String reason, Duration wait) {
    super(reason);
    this.kind = kind;
    this.status = status;
    this.wait = wait;
  }

  Kind kind() {
    return kind;
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
