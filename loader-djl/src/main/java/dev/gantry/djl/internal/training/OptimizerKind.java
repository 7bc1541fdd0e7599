// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.training.optimizer.Adadelta;
import ai.djl.training.optimizer.Adagrad;
import ai.djl.training.optimizer.Adam;
import ai.djl.training.optimizer.AdamW;
import ai.djl.training.optimizer.Nag;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.optimizer.RmsProp;
import ai.djl.training.optimizer.Sgd;
import ai.djl.training.tracker.ParameterTracker;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.PrivateField;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.RecordComponent;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// One of DJL's optimizers, and the private fields in which it keeps its state (source: DJL
/// 0.35.1).
///
/// @param countsUpdates whether the optimizer counts the updates of each parameter
/// @param states the states that the optimizer has in any configuration
record OptimizerKind(Class<? extends Optimizer> type, boolean countsUpdates, List<State> states) {
  private static final List<OptimizerKind> ALL =
      List.of(
          kind(Adam.class, always(Adam.class, "means"), always(Adam.class, "variances")),
          kind(AdamW.class, always(AdamW.class, "means"), always(AdamW.class, "variances")),
          kind(Sgd.class, onlyIf(Sgd.class, "momentumStates", "momentum", "float")),
          kind(Nag.class, onlyIf(Nag.class, "momentumStates", "momentum", "float")),
          kind(
              RmsProp.class,
              always(RmsProp.class, "means"),
              onlyIf(RmsProp.class, "variances", "centered", "boolean"),
              onlyIf(RmsProp.class, "momentums", "centered", "boolean")),
          kind(Adagrad.class, always(Adagrad.class, "history")),
          new OptimizerKind(
              Adadelta.class,
              false,
              List.of(always(Adadelta.class, "accumG"), always(Adadelta.class, "accumDelta"))));

  /// One state, such as Adam's means: a map from the id of a parameter to an array for each device,
  /// filled as parameters are updated for the first time.
  ///
  /// @param arrays the field that holds the map
  /// @param condition the field of the setting without which the optimizer does not use this
  ///     state: a number that must not be 0, or a boolean; empty if it is always used
  record State(
      String name,
      PrivateField<Map<String, Map<Device, NDArray>>> arrays,
      Optional<PrivateField<Object>> condition) {
    /// The type of each field that holds a map of a state, as `Type#getTypeName` returns it.
    static final String TYPE =
        "java.util.Map<java.lang.String, java.util.Map<ai.djl.Device, ai.djl.ndarray.NDArray>>";

    /// Whether an optimizer with its configuration uses this state.
    boolean isUsedBy(Optimizer optimizer) {
      Object value = condition.<Object>map(field -> field.get(optimizer)).orElse(true);
      return !value.equals(false) && !value.equals(0f);
    }

    /// The name of a parameter's array in a checkpoint, as in `means/01Linear_weight`.
    String key(String path) {
      return name + "/" + path;
    }

    Stream<PrivateField<?>> fields() {
      return Stream.concat(Stream.of(arrays), condition.stream());
    }
  }

  private static OptimizerKind kind(Class<? extends Optimizer> type, State... states) {
    return new OptimizerKind(type, true, List.of(states));
  }

  private static State always(Class<? extends Optimizer> owner, String name) {
    return new State(name, PrivateField.of(owner, name, State.TYPE), Optional.empty());
  }

  private static State onlyIf(
      Class<? extends Optimizer> owner, String name, String setting, String type) {
    return new State(
        name,
        PrivateField.of(owner, name, State.TYPE),
        Optional.of(PrivateField.of(owner, setting, type)));
  }

  /// The kind of an optimizer. A subclass without state of its own has its parent's kind.
  ///
  /// @throws MisuseException if the optimizer is of no known kind, may have state that is not
  ///     known here, or if this version of DJL keeps the state of this kind in other fields
  static OptimizerKind of(Optimizer optimizer) {
    OptimizerKind kind =
        ALL.stream()
            .filter(candidate -> candidate.type.isInstance(optimizer))
            .findFirst()
            .orElseThrow(() ->
                new MisuseException(
                    "the state of the optimizer "
                        + optimizer.getClass().getName()
                        + " is not known, only that of "
                        + ALL.stream()
                            .map(OptimizerKind::djlName)
                            .collect(Collectors.joining(", ", "", " and their subclasses"))));
    PrivateField.requireAll(kind.states.stream().flatMap(State::fields).toList());
    Set<String> known =
        Stream.concat(kind.states.stream().map(State::name), OptimizerState.FIELDS.stream())
            .collect(Collectors.toSet());
    requireNoUnknownState(kind.type, known, optimizer.getClass());
    return kind;
  }

  /// DJL's name of the optimizer, such as `AdamW`.
  String djlName() {
    return type.getSimpleName();
  }

  /// Looks for fields in which an optimizer may keep state that Gantry does not know. A checkpoint would
  /// lack that state, and the resumed training would silently differ.
  ///
  /// @param djl one of DJL's own classes, whose fields are settings unless they hold objects
  /// @param known the names of the fields of DJL's classes that are saved
  /// @param type `djl` or a class derived from it
  private static void requireNoUnknownState(
      Class<? extends Optimizer> djl, Set<String> known, Class<?> type) {
    for (Class<?> each = type; each != Object.class; each = each.getSuperclass()) {
      boolean own = each != djl && each != Optimizer.class;
      for (Field field : each.getDeclaredFields()) {
        if (own ? mayChange(field) : mayHoldState(field, known)) {
          throw new MisuseException(
              field.getDeclaringClass().getName()
                  + "."
                  + field.getName()
                  + " may be state of the optimizer, and only that of DJL's "
                  + djl.getSimpleName()
                  + " is saved. If it is not state, make it transient, or final and of a"
                  + " primitive type, String, enum, tracker or record of these");
        }
      }
    }
  }

  private static boolean mayHoldState(Field field, Set<String> known) {
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
                .allMatch(OptimizerKind::isValue));
  }
}
