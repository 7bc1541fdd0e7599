// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import org.jspecify.annotations.Nullable;

/// A mistake in the calling program: a closed slab, an unknown tensor name, an option out of range.
public final class MisuseException extends GantryException {
  private static final long serialVersionUID = 1L;

  /// @param message may hold names from files; control characters are escaped
  public MisuseException(String message) {
    super(OneLine.ofMessage(message));
  }

  /// @param option the name of the option, for the message
  /// @throws MisuseException if `value` is less than `least` or more than `most`
  public static void requireRange(String option, long value, long least, long most) {
    if (value < least || value > most) {
      throw new MisuseException(
          option
              + " must be "
              + (most == Long.MAX_VALUE ? "at least " + least : least + " to " + most)
              + " (was "
              + value
              + ")");
    }
  }

  /// @param option the name of the option, for the message
  /// @return the value
  /// @throws MisuseException if the value is null
  public static <T> T requireGiven(String option, @Nullable T value) {
    if (value == null) {
      throw new MisuseException(option + " must be given (was null)");
    }
    return value;
  }
}
