// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import ai.djl.engine.Engine;
import dev.gantry.core.MisuseException;
import java.lang.reflect.Field;
import java.lang.reflect.InaccessibleObjectException;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;

/// A private field of a DJL class, for state that DJL's API does not give. Looking for the field
/// never fails: [#requireAll] reports the fields that a version of DJL lacks. Thread-safe.
///
/// @param <T> the type of the field's value
public record PrivateField<T>(String description, @Nullable Field field) {
  /// @param type the field's type as `Type#getTypeName` returns it, with its type arguments; it
  ///     must be `T`
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

  /// @throws MisuseException if this version of DJL lacks some of the fields; the message names
  ///     them
  public static void requireAll(List<PrivateField<?>> fields) {
    StringJoiner missing = new StringJoiner(", ");
    for (PrivateField<?> candidate : fields) {
      if (candidate.field == null) {
        missing.add(candidate.toString());
      }
    }
    if (missing.length() > 0) {
      throw new MisuseException(
          "DJL " + Engine.getDjlVersion() + " lacks the fields known of 0.35.1: " + missing);
    }
  }

  /// Returns the field's name with its class, such as `Adam.means`.
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

  /// Sets the field's value. The caller must know that the field exists.
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
