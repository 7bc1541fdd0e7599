package dev.gantry.djl.internal.training;

import static dev.gantry.djl.internal.training.StateField.always;
import static dev.gantry.djl.internal.training.StateField.ifNonZero;
import static dev.gantry.djl.internal.training.StateField.ifTrue;

import ai.djl.training.optimizer.Adadelta;
import ai.djl.training.optimizer.Adagrad;
import ai.djl.training.optimizer.Adam;
import ai.djl.training.optimizer.AdamW;
import ai.djl.training.optimizer.Nag;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.optimizer.RmsProp;
import ai.djl.training.optimizer.Sgd;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.PrivateField;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// One of DJL's optimizers, and the private fields in which it keeps its state (source: DJL
/// 0.35.1).
///
/// @param countsUpdates whether it counts the updates of each parameter
/// @param states those that it has in one configuration or another
record OptimizerKind(
    Class<? extends Optimizer> type, boolean countsUpdates, List<StateField> states) {
  private static final List<OptimizerKind> ALL =
      List.of(
          kind(Adam.class, always(Adam.class, "means"), always(Adam.class, "variances")),
          kind(AdamW.class, always(AdamW.class, "means"), always(AdamW.class, "variances")),
          kind(Sgd.class, ifNonZero(Sgd.class, "momentumStates", "momentum")),
          kind(Nag.class, ifNonZero(Nag.class, "momentumStates", "momentum")),
          kind(
              RmsProp.class,
              always(RmsProp.class, "means"),
              ifTrue(RmsProp.class, "variances", "centered"),
              ifTrue(RmsProp.class, "momentums", "centered")),
          kind(Adagrad.class, always(Adagrad.class, "history")),
          new OptimizerKind(
              Adadelta.class,
              false,
              List.of(always(Adadelta.class, "accumG"), always(Adadelta.class, "accumDelta"))));

  /// The kind of an optimizer; a subclass without state of its own is of its parent's kind.
  ///
  /// @throws MisuseException if it is of none, may have state that is not known here, or this
  ///     version of DJL keeps the state of this kind elsewhere
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
                        + served()));
    PrivateField.requireAll(kind.states.stream().flatMap(StateField::fields).toList());
    Set<String> known =
        Stream.concat(kind.states.stream().map(StateField::name), OptimizerState.FIELDS.stream())
            .collect(Collectors.toSet());
    new UnknownState(kind.type, known).requireNone(optimizer.getClass());
    return kind;
  }

  /// DJL's name for it, such as `AdamW`.
  String djlName() {
    return type.getSimpleName();
  }

  private static OptimizerKind kind(Class<? extends Optimizer> type, StateField... states) {
    return new OptimizerKind(type, true, List.of(states));
  }

  private static String served() {
    return ALL.stream()
        .map(OptimizerKind::djlName)
        .collect(Collectors.joining(", ", "", " and their subclasses"));
  }
}
