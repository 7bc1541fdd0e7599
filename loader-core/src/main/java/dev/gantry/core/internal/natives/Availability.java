// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import java.util.Optional;
import java.util.function.Function;

/// Something that this machine may lack; if it does, the reason.
public sealed interface Availability<T> {
  /// The thing is there.
  record Present<T>(T value) implements Availability<T> {}

  /// The thing is not there.
  ///
  /// @param reason one line for a person, such as what was looked for and where
  record Absent<T>(String reason) implements Availability<T> {}

  static <T> Availability<T> present(T value) {
    return new Present<>(value);
  }

  static <T> Availability<T> absent(String reason) {
    return new Absent<>(reason);
  }

  /// The value, or empty without the reason.
  default Optional<T> toOptional() {
    return switch (this) {
      case Present<T>(T value) -> Optional.of(value);
      case Absent<T> _ -> Optional.empty();
    };
  }

  /// Applies `next` to the value; an absence keeps its reason.
  default <R> Availability<R> then(Function<? super T, Availability<R>> next) {
    return switch (this) {
      case Present<T>(T value) -> next.apply(value);
      case Absent<T>(String reason) -> absent(reason);
    };
  }

  /// Returns the value; if it is absent, throws the exception that `refusal` makes of the reason.
  default <X extends Throwable> T orElseThrow(Function<? super String, X> refusal) throws X {
    return switch (this) {
      case Present<T>(T value) -> value;
      case Absent<T>(String reason) -> throw refusal.apply(reason);
    };
  }
}
