// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.ParameterTracker;
import dev.gantry.core.MisuseException;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.RecordComponent;
import java.util.Set;
import java.util.stream.Stream;

/// Finds fields in which an optimizer may keep state that Gantry does not know. A checkpoint would
/// lack that state, and the resumed training would silently differ.
final class UnknownState {
  /// One of DJL's own classes, whose fields are settings unless they hold objects.
  private final Class<? extends Optimizer> djl;

  /// The names of the fields of DJL's classes that are saved.
  private final Set<String> known;

  UnknownState(Class<? extends Optimizer> djl, Set<String> known) {
    this.djl = djl;
    this.known = known;
  }

  /// @param type `djl` or a class derived from it
  /// @throws MisuseException if it, or a class that it is derived from, has a field that may hold
  ///     unknown state
  void requireNone(Class<?> type) {
    for (Class<?> each = type; each != Object.class; each = each.getSuperclass()) {
      boolean own = each != djl && each != Optimizer.class;
      Stream.of(each.getDeclaredFields())
          .filter(field -> own ? mayChange(field) : mayHoldState(field))
          .findFirst()
          .ifPresent(field -> {
            throw new MisuseException(
                name(field)
                    + " may be state of the optimizer, and only that of DJL's "
                    + djl.getSimpleName()
                    + " is saved. If it is not state, make it transient, or final and of a"
                    + " primitive type, String, enum, tracker or record of these");
          });
    }
  }

  private static String name(Field field) {
    return field.getDeclaringClass().getName() + "." + field.getName();
  }

  private boolean mayHoldState(Field field) {
    return !known.contains(field.getName())
        && !Modifier.isStatic(field.getModifiers())
        && !isValue(field.getType());
  }

  private static boolean mayChange(Field field) {
    int modifiers = field.getModifiers();
    boolean outerInstance = field.isSynthetic() && field.getName().startsWith("this$");
    return !Modifier.isStatic(modifiers)
        && !Modifier.isTransient(modifiers)
        && !outerInstance
        && !(Modifier.isFinal(modifiers) && isValue(field.getType()));
  }

  private static boolean isValue(Class<?> type) {
    return MethodType.methodType(type).unwrap().returnType().isPrimitive()
        || type.isEnum()
        || type == String.class
        || type == Class.class
        || ParameterTracker.class.isAssignableFrom(type)
        || (type.isRecord()
            && Stream.of(type.getRecordComponents())
                .map(RecordComponent::getType)
                .allMatch(UnknownState::isValue));
  }
}
