// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import dev.gantry.core.Failure;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;

/// A fault that is injected into an operation. A fault excuses certain exceptions; without a
/// fault, no exception is excused.
enum Fault {
  NONE,
  /// The caller cancels.
  CANCEL,
  /// The thread is interrupted.
  INTERRUPT,
  /// System calls fail: EIO, ENOSPC, EMFILE; reads and writes are short.
  FILES,
  /// The session is closed during the operation.
  SESSION,
  /// A listener or transform of the caller throws.
  CONSUMER,
  /// The manager that should own the arrays is closed.
  MANAGER,
  /// The server of remote files sends wrong answers or none.
  ANSWERS,
  /// The server of resident weights is killed.
  SERVER;

  /// The exception that a consumer throws.
  static final class ThrownOnPurpose extends RuntimeException {
    private static final long serialVersionUID = 1L;

    ThrownOnPurpose() {
      super("thrown on purpose");
    }
  }

  /// Whether this fault explains an operation's failure, by the exception or by one of its causes.
  boolean excuses(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (isExcused(cause)) {
        return true;
      }
    }
    return false;
  }

  private boolean isExcused(Throwable cause) {
    return switch (this) {
      case NONE -> false;
      case CONSUMER -> cause instanceof ThrownOnPurpose;
      case MANAGER -> cause instanceof IllegalStateException || cause instanceof MisuseException;
      case SESSION ->
          cause instanceof MisuseException
              || (cause instanceof TransferException known
                  && (known.failure() instanceof Failure.Cancelled
                      || known.getMessage().contains("session is closed")));
      case CANCEL, INTERRUPT, FILES, ANSWERS, SERVER ->
          cause instanceof TransferException known && isExcused(known.failure());
    };
  }

  private boolean isExcused(Failure failure) {
    return switch (failure) {
      case Failure.Cancelled _ -> this == CANCEL || this == INTERRUPT;
      case Failure.Errno _ -> this == FILES || this == SERVER;
      case Failure.EndOfFile _ -> this == FILES || this == ANSWERS;
      case Failure.Remote _ -> this == ANSWERS || this == SERVER;
      case Failure.Malformed _ -> this == ANSWERS;
      case Failure.CuFile _, Failure.Cuda _, Failure.NothingWritten _, Failure.Torch _ -> false;
    };
  }
}
