// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

/// Everything that Gantry reports, in three families: a file that is not what it claims to be
/// ([MalformedFileException]), a file or device that fails ([TransferException],
/// [DeviceUnavailableException]), and a caller's mistake ([MisuseException]).
///
/// Unchecked, so that it passes through iterators, blocks and listeners unharmed. Its message is
/// one line.
public abstract sealed class GantryException extends RuntimeException
    permits MalformedFileException, TransferException, DeviceUnavailableException, MisuseException {
  private static final long serialVersionUID = 1L;

  GantryException(String message, Throwable cause) {
    super(OneLine.escaped(message), cause);
  }

  GantryException(String message) {
    super(OneLine.escaped(message));
  }

  /// One line, never null.
  @Override
  public final String getMessage() {
    return String.valueOf(super.getMessage());
  }
}
