package dev.gantry.cli;

/// The demo found that something is not as it must be. Its message is one line.
final class CheckFailedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  CheckFailedException(String message) {
    super(message);
  }
}
