package dev.gantry.djl.internal.training;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.training.optimizer.Optimizer;
import dev.gantry.djl.internal.torch.PrivateField;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/// One state of one of DJL's optimizers, such as Adam's means: a map from the id of a parameter to
/// an array for each device, filled as parameters are updated for the first time.
///
/// @param arrays where it is
/// @param condition what the optimizer uses it by, if not always: a number that must not be 0, or a
///     truth
record StateField(
    String name,
    PrivateField<Map<String, Map<Device, NDArray>>> arrays,
    Optional<PrivateField<Object>> condition) {
  /// The type of each, as `Type#getTypeName` has it.
  static final String TYPE =
      "java.util.Map<java.lang.String, java.util.Map<ai.djl.Device, ai.djl.ndarray.NDArray>>";

  static StateField always(Class<? extends Optimizer> owner, String name) {
    return new StateField(name, PrivateField.of(owner, name, TYPE), Optional.empty());
  }

  static StateField ifNonZero(Class<? extends Optimizer> owner, String name, String number) {
    return new StateField(
        name,
        PrivateField.of(owner, name, TYPE),
        Optional.of(PrivateField.of(owner, number, "float")));
  }

  static StateField ifTrue(Class<? extends Optimizer> owner, String name, String truth) {
    return new StateField(
        name,
        PrivateField.of(owner, name, TYPE),
        Optional.of(PrivateField.of(owner, truth, "boolean")));
  }

  /// Whether an optimizer of this configuration has this state at all.
  boolean isUsedBy(Optimizer optimizer) {
    Object value = condition.<Object>map(field -> field.get(optimizer)).orElse(true);
    return !value.equals(false) && !value.equals(0f);
  }

  /// What the array of a parameter is called, as in `means/01Linear_weight`.
  String key(String path) {
    return name + "/" + path;
  }

  Stream<PrivateField<?>> fields() {
    return Stream.concat(Stream.of(arrays), condition.stream());
  }
}
