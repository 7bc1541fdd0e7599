// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.MisuseException;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Reads settings of this process from environment variables that other programs read, too.
public final class Variables {
  private Variables() {}

  /// Returns the value of the system property of a name, or else of the environment variable; null
  /// if neither is set.
  public static @Nullable String ofProcess(String name) {
    String property = System.getProperty(name);
    return property == null ? System.getenv(name) : property;
  }

  /// Returns a variable's value without surrounding white space; empty if the variable is not set
  /// or blank.
  public static Optional<String> given(Function<String, @Nullable String> variables, String name) {
    return Optional.ofNullable(variables.apply(name))
        .map(String::strip)
        .filter(value -> !value.isEmpty());
  }

  /// Returns the value of a setting that is true or false.
  ///
  /// @param name the setting's name, for the message
  /// @throws MisuseException if the text is neither
  public static boolean flag(String name, String text) {
    return switch (text.toLowerCase(Locale.ROOT)) {
      case "true" -> true;
      case "false" -> false;
      default -> throw new MisuseException(name + " must be true or false (was " + text + ")");
    };
  }
}
