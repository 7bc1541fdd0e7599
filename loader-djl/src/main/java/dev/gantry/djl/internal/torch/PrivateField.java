// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import ai.djl.engine.Engine;
import dev.gantry.core.MisuseException;
import java.lang.reflect.Field;
import java.lang.reflect.InaccessibleObjectException;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// A private field of one of DJL's classes, for what DJL does not offer otherwise. Looking for it never
/// fails: [#requireAll] reports fields that a version of DJL lacks. Thread-safe.
///
/// @param <T> what it holds
public record PrivateField<T>(String description, @Nullable Field field) {
  /// @param type as `Type#getTypeName` has it, with its type arguments; it must be `T`
  public static <T> PrivateField<T> of(Class<?> owner, String name, String type) {
    String description = owner.getSimpleName() + "." + name;
    try {
      Field field = owner.getDeclaredField(name);
      if (field.getGenericType().getTypeName().equals(type)) {
        field.setAccessible(true);
        return new PrivateField<>(description, field);
      }
    } catch (NoSuchFieldException | InaccessibleObjectException _) {
      // The field counts as missing, whatever the reason.
    }
    return new PrivateField<>(description, null);
  }

  /// @throws MisuseException that names those of the fields that this version of DJL lacks
  public static void requireAll(List<PrivateField<?>> fields) {
    String missing =
        fields.stream()
            .filter(candidate -> candidate.field == null)
            .map(PrivateField::toString)
            .collect(Collectors.joining(", "));
    if (!missing.isEmpty()) {
      throw new MisuseException(
          "DJL " + Engine.getDjlVersion() + " lacks the fields known of 0.35.1: " + missing);
    }
  }

  /// The field's name, as in `Adam.means`.
  @Override
  public String toString() {
    return description;
  }

  /// Returns the field's value, never null. The caller must know that the field exists.
  public T get(Object holder) {
    return find(holder).orElseThrow(() -> new IllegalStateException(description + " is null"));
  }

  /// Returns the field's value, or empty for null. The caller must know that the field exists.
  @SuppressWarnings("unchecked") // its type was compared when it was found
  public Optional<T> find(Object holder) {
    try {
      return Optional.ofNullable((T) found().get(holder));
    } catch (IllegalAccessException fault) {
      throw new AssertionError(description + " was made accessible", fault);
    }
  }

  /// Must not be called where the field is missing.
  public void set(Object holder, T value) {
    try {
      found().set(holder, value);
    } catch (IllegalAccessException fault) {
      throw new AssertionError(description + " was made accessible", fault);
    }
  }

  private Field found() {
    return Objects.requireNonNull(field, description);
  }
}
