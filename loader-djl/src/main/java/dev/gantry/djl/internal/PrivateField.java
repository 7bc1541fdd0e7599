package dev.gantry.djl.internal;

import java.lang.reflect.Field;
import java.lang.reflect.InaccessibleObjectException;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// A private field of one of DJL's classes, where DJL has no other way to what it holds. Looking for
/// it never fails: a version of DJL that lacks it says so through [#isMissing]. Thread-safe.
///
/// @param <T> what it holds, never null
final class PrivateField<T> {
  private final String description;
  private final @Nullable Field field;

  private PrivateField(String description, @Nullable Field field) {
    this.description = description;
    this.field = field;
  }

  /// @param type as `Type#getTypeName` has it, with its type arguments; it must be `T`
  static <T> PrivateField<T> of(Class<?> owner, String name, String type) {
    String description = owner.getSimpleName() + "." + name;
    try {
      Field field = owner.getDeclaredField(name);
      if (field.getGenericType().getTypeName().equals(type)) {
        field.setAccessible(true);
        return new PrivateField<>(description, field);
      }
    } catch (NoSuchFieldException | InaccessibleObjectException _) {
      // Missing, whatever the reason.
    }
    return new PrivateField<>(description, null);
  }

  boolean isMissing() {
    return field == null;
  }

  /// As in `Adam.means`.
  @Override
  public String toString() {
    return description;
  }

  /// Must not be called where the field is missing.
  @SuppressWarnings("unchecked") // its type was compared when it was found
  T get(Object holder) {
    try {
      return (T) Objects.requireNonNull(found().get(holder), description);
    } catch (IllegalAccessException fault) {
      throw new AssertionError(description + " was made accessible", fault);
    }
  }

  /// Must not be called where the field is missing.
  void set(Object holder, T value) {
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
