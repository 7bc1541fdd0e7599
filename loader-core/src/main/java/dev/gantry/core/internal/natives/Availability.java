// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import java.util.Optional;
import java.util.function.Function;

/// A value that this machine may lack, or the reason why it lacks the value.
public sealed interface Availability<T> {
  /// The value is available.
  record Present<T>(T value) implements Availability<T> {}

  /// The value is not available.
  ///
  /// @param reason one line for a person to read, such as the name of a missing library and the
  ///     folders that were searched
  record Absent<T>(String reason) implements Availability<T> {}

  static <T> Availability<T> present(T value) {
    return new Present<>(value);
  }

  static <T> Availability<T> absent(String reason) {
    return new Absent<>(reason);
  }

  /// Returns the value, or empty without the reason.
  default Optional<T> toOptional() {
    return switch (this) {
      case Present<T>(T value) -> Optional.of(value);
      case Absent<T> _ -> Optional.empty();
    };
  }

  /// Applies `next` to the value; an absent value stays absent for the same reason.
  default <R> Availability<R> then(Function<? super T, Availability<R>> next) {
    return switch (this) {
      case Present<T>(T value) -> next.apply(value);
      case Absent<T>(String reason) -> absent(reason);
    };
  }

  /// Returns the value; if the value is absent, throws the exception that `refusal` makes of the
  /// reason.
  default <X extends Throwable> T orElseThrow(Function<? super String, X> refusal) throws X {
    return switch (this) {
      case Present<T>(T value) -> value;
      case Absent<T>(String reason) -> throw refusal.apply(reason);
    };
  }
}
