// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

/// The supertype of all exceptions that Gantry throws. They have three families: a file that is
/// not what it claims to be ([MalformedFileException]), a file or device that fails
/// ([TransferException], [DeviceUnavailableException]), and a caller's mistake
/// ([MisuseException]).
///
/// The exception is unchecked, so that it passes through iterators, blocks and listeners, which
/// may not declare exceptions. Its message is one line.
public abstract sealed class GantryException extends RuntimeException
    permits MalformedFileException, TransferException, DeviceUnavailableException, MisuseException {
  private static final long serialVersionUID = 1L;

  GantryException(String message, Throwable cause) {
    super(OneLine.escaped(message), cause);
  }

  GantryException(String message) {
    super(OneLine.escaped(message));
  }

  /// Returns the message, which is one line and never null.
  @Override
  public final String getMessage() {
    return String.valueOf(super.getMessage());
  }
}
