// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.training.optimizer.Adam;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.optimizer.Sgd;
import ai.djl.training.tracker.Tracker;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import dev.gantry.djl.internal.torch.PrivateField;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class OptimizerStateTest {
  private static final SavedOptimizer<NDArray> NOTHING =
      new SavedOptimizer<>("Adam", new LinkedHashMap<>(), new LinkedHashMap<>(), 0);

  @Test
  void namesStatesAndParametersThatHaveGradients() {
    try (Training training = new Training(Training.perceptron(), adam())) {
      training.steps(0, 2);
      SavedOptimizer<NDArray> values = OptimizerState.of(training.trainer).values();
      assertThat(values.kind()).isEqualTo("Adam");
      // The running mean and variance have no gradient.
      assertThat(values.arrays().keySet())
          .containsExactly(
              "means/01Linear_weight",
              "means/01Linear_bias",
              "means/02BatchNorm_gamma",
              "means/02BatchNorm_beta",
              "means/05Linear_weight",
              "means/05Linear_bias",
              "variances/01Linear_weight",
              "variances/01Linear_bias",
              "variances/02BatchNorm_gamma",
              "variances/02BatchNorm_beta",
              "variances/05Linear_weight",
              "variances/05Linear_bias");
      assertThat(values.arrays().get("means/01Linear_weight").getShape())
          .isEqualTo(new Shape(10, 6));
      assertThat(values.updateCounts())
          .hasSize(6)
          .containsEntry("02BatchNorm_gamma", 2)
          .doesNotContainKey("02BatchNorm_runningMean");
      assertThat(values.updates()).isEqualTo(2);
    }
  }

  @Test
  void aSharedParameterIsThereOnceUnderItsFirstPath() {
    try (Training training = new Training(Training.tied(), adam())) {
      training.steps(0, 1);
      assertThat(OptimizerState.of(training.trainer).values().updateCounts())
          .containsOnlyKeys("01Linear_weight", "01Linear_bias", "04Linear_weight", "04Linear_bias");
      assertThat(TrainerParts.of(training.trainer).values())
          .containsOnlyKeys("01Linear_weight", "01Linear_bias", "04Linear_weight", "04Linear_bias");
    }
  }

  @Test
  void anOptimizerThatHasMadeNoStepHasNothing() {
    try (Training training = new Training(Training.perceptron(), adam())) {
      assertThat(OptimizerState.of(training.trainer).values()).isEqualTo(NOTHING);
      Restores.optimizer(OptimizerState.of(training.trainer), NOTHING);
      assertThat(OptimizerState.of(training.trainer).values()).isEqualTo(NOTHING);
    }
  }

  @ParameterizedTest
  @MethodSource("dev.gantry.djl.internal.training.Optimizers#all")
  void whatIsExpectedIsWhatThereIsAfterAStep(Supplier<Optimizer> optimizer) {
    try (Training training = new Training(Training.perceptron(), optimizer.get())) {
      OptimizerState state = OptimizerState.of(training.trainer);
      Map<String, ArrayKind> expected = kinds(state.expected());
      training.steps(0, 1);
      assertThat(expected).isEqualTo(kinds(state.values().arrays()));
      assertThat(state.expected()).isEqualTo(state.values().arrays());
    }
  }

  private static Map<String, ArrayKind> kinds(Map<String, NDArray> arrays) {
    Map<String, ArrayKind> kinds = new LinkedHashMap<>();
    arrays.forEach((name, array) -> kinds.put(name, ArrayKind.of(array)));
    return kinds;
  }

  @Test
  void anArrayThatIsThereTakesTheValuesAndOneThatIsNeededNoMoreIsClosed() {
    try (Training training = new Training(Training.perceptron(), adam())) {
      training.steps(0, 2);
      OptimizerState state = OptimizerState.of(training.trainer);
      SequencedMap<String, NDArray> before = state.values().arrays();
      Restores.optimizer(state, state.values());
      state
          .values()
          .arrays()
          .forEach((name, array) -> assertThat(array).isSameAs(before.get(name)));

      Restores.optimizer(state, NOTHING);
      assertThat(before.values()).allMatch(array -> ((PtNDArray) array).isReleased());
      assertThat(state.values()).isEqualTo(NOTHING);
      assertThat(training.steps(2, 3)).hasSize(1);
    }
  }

  @Test
  void theCopyIsTheOptimizersOwn() {
    try (Training training = new Training(Training.perceptron(), adam());
        Training other = new Training(Training.perceptron(), adam())) {
      training.steps(0, 2);
      try (NDManager manager = NDManager.newBaseManager()) {
        Restores.optimizer(
            OptimizerState.of(other.trainer),
            PlainState.of(training.trainer).optimizerValues(manager));
      }
      other.trainer.close();
      // The optimizer keeps the values after its trainer is closed, like DJL's own: a second
      // trainer may continue with it.
      SequencedMap<String, NDArray> copies = OptimizerState.of(other.trainer).values().arrays();
      assertThat(copies).hasSize(12);
      copies.forEach((_, array) -> assertThat(array.toFloatArray()).isNotEmpty());
      Restores.optimizer(OptimizerState.of(other.trainer), NOTHING);
      assertThat(copies.values()).allMatch(array -> ((PtNDArray) array).isReleased());
    }
  }

  @Test
  void refusesTheStateOfAnotherOptimizer() {
    assertRefuses(adam(), momentum(0.9f), "Adam", "Sgd");
    assertRefuses(Optimizer.adam().build(), Optimizer.adamW().build(), "Adam", "AdamW");
  }

  @Test
  void refusesTheStateOfOneThatIsConfiguredOtherwise() {
    assertRefuses(
        momentum(0), momentum(0.9f), "'momentumStates/01Linear_weight'", "2 more are not saved");
    assertRefuses(momentum(0.9f), momentum(0), "optimizer has no 'momentumStates/01Linear_weight'");
    assertRefuses(
        Optimizer.rmsprop().optCentered(false).build(),
        Optimizer.rmsprop().optCentered(true).build(),
        "'variances/01Linear_weight'",
        "8 more are not saved");
  }

  @Test
  void refusesWhatDoesNotFitTheParameters() {
    try (Training training = new Training(Training.perceptron(), adam());
        Training other = new Training(Training.tied(), adam());
        NDManager manager = NDManager.newBaseManager()) {
      training.steps(0, 1);
      SavedOptimizer<NDArray> values = OptimizerState.of(training.trainer).values();
      assertUnchangedBy(other, values, "optimizer has no 'means/02BatchNorm_gamma'");

      String name = "means/01Linear_weight";
      assertUnchangedBy(
          training, with(values, name, manager.zeros(new Shape(10, 7))), name, "[10, 7]");
      assertUnchangedBy(
          training,
          with(values, name, manager.zeros(new Shape(10, 6), DataType.FLOAT64)),
          name,
          "F64",
          "F32");
    }
  }

  @Test
  void refusesHalfOfTheStateOfAParameter() {
    try (Training training = new Training(Training.perceptron(), adam())) {
      training.steps(0, 1);
      SavedOptimizer<NDArray> values = OptimizerState.of(training.trainer).values();
      SequencedMap<String, NDArray> arrays = new LinkedHashMap<>(values.arrays());
      arrays.remove("variances/02BatchNorm_beta");
      SequencedMap<String, Integer> counts = new LinkedHashMap<>(values.updateCounts());
      counts.remove("05Linear_bias");
      assertUnchangedBy(
          training,
          new SavedOptimizer<>("Adam", arrays, counts, 1),
          "'variances/02BatchNorm_beta', 'updateCounts/05Linear_bias' are not saved");
    }
  }

  @Test
  void refusesAnArrayThatIsClosed() {
    try (Training training = new Training(Training.perceptron(), adam());
        Training other = new Training(Training.perceptron(), adam());
        NDManager manager = NDManager.newBaseManager()) {
      training.steps(0, 1);
      SavedOptimizer<NDArray> values = PlainState.of(training.trainer).optimizerValues(manager);
      values.arrays().lastEntry().getValue().close();
      OptimizerState state = OptimizerState.of(other.trainer);
      assertThatThrownBy(() -> Restores.optimizer(state, values))
          .isInstanceOf(IllegalStateException.class);
      assertThat(state.values()).isEqualTo(NOTHING);
    }
  }

  @Test
  void aSubclassCountsAsItsParent() {
    Optimizer subclass = new Sgd(Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.1f))) {};
    try (Training training = new Training(Training.perceptron(), subclass)) {
      training.steps(0, 1);
      SavedOptimizer<NDArray> values = OptimizerState.of(training.trainer).values();
      assertThat(values.kind()).isEqualTo("Sgd");
      assertThat(values.updateCounts()).hasSize(6);
    }
  }

  static Stream<Arguments> optimizersWithStateOfTheirOwn() {
    Map<String, NDArray> slow = new HashMap<>();
    return Stream.of(
        Arguments.of(new Averaging(), "Averaging.slow"),
        Arguments.of(new Derived(), "Averaging.slow"),
        Arguments.of(new Counting(), "Counting.steps"),
        Arguments.of(
            new Adam(Optimizer.adam()) {
              @Override
              public void update(String parameterId, NDArray weight, NDArray gradient) {
                super.update(parameterId, weight, slow.getOrDefault(parameterId, gradient));
                slow.put(parameterId, gradient);
              }
            },
            "slow"));
  }

  @ParameterizedTest
  @MethodSource("optimizersWithStateOfTheirOwn")
  void refusesASubclassThatMayHaveStateOfItsOwnAndNamesTheField(Optimizer subclass, String field) {
    try (Training training = new Training(Training.perceptron(), subclass)) {
      assertThatThrownBy(() -> OptimizerState.of(training.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(field)
          .hasMessageContaining("only that of DJL's Adam is saved");
    }
  }

  @Test
  void aSubclassWithSettingsIsServed() {
    try (Training training = new Training(Training.perceptron(), new Settings())) {
      training.steps(0, 1);
      assertThat(OptimizerState.of(training.trainer).values().kind()).isEqualTo("Adam");
    }
  }

  @Test
  void saysWhichOptimizersAreServed() {
    try (Training training = new Training(Training.perceptron(), new Unknown())) {
      assertThatThrownBy(() -> OptimizerState.of(training.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(Unknown.class.getName())
          .hasMessageContaining("Adam, AdamW, Sgd, Nag, RmsProp, Adagrad, Adadelta");
    }
  }

  @Test
  void saysWhichFieldsAnotherDjlLacks() {
    List<PrivateField<?>> fields =
        List.of(
            PrivateField.of(Adam.class, "means", OptimizerKind.State.TYPE),
            PrivateField.of(Adam.class, "means", "java.util.Map"),
            PrivateField.of(Sgd.class, "velocity", "float"));
    assertThatThrownBy(() -> PrivateField.requireAll(fields))
        .isInstanceOf(MisuseException.class)
        .hasMessageEndingWith("lacks the fields known of 0.35.1: Adam.means, Sgd.velocity");
  }

  @Test
  void parametersMustBeTheSame() {
    try (Training training = new Training(Training.perceptron(), adam());
        Training other = new Training(Training.tied(), adam())) {
      TrainerParts parameters = TrainerParts.of(training.trainer);
      float[] before = parameters.values().firstEntry().getValue().toFloatArray();
      assertThatThrownBy(
              () -> Restores.parameters(parameters, TrainerParts.of(other.trainer).values()))
          .isInstanceOf(MisuseException.class)
          .hasMessageContainingAll("'02BatchNorm_gamma'", "2 more are not saved")
          .hasMessageContaining("the model has no '04Linear_weight'");
      assertThat(parameters.values().firstEntry().getValue().toFloatArray()).isEqualTo(before);
    }
  }

  /// Checks that an optimizer refuses the state of another one, and takes no value from it.
  private static void assertRefuses(Optimizer from, Optimizer to, String... message) {
    try (Training training = new Training(Training.perceptron(), from);
        Training other = new Training(Training.perceptron(), to)) {
      training.steps(0, 1);
      assertUnchangedBy(other, OptimizerState.of(training.trainer).values(), message);
    }
  }

  private static void assertUnchangedBy(
      Training training, SavedOptimizer<NDArray> values, String... message) {
    PlainState before = PlainState.of(training.trainer);
    assertThatThrownBy(() -> Restores.optimizer(OptimizerState.of(training.trainer), values))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll(message);
    assertThat(PlainState.of(training.trainer)).isEqualTo(before);
  }

  private static SavedOptimizer<NDArray> with(
      SavedOptimizer<NDArray> values, String name, NDArray array) {
    SequencedMap<String, NDArray> arrays = new LinkedHashMap<>(values.arrays());
    arrays.put(name, array);
    return new SavedOptimizer<>(values.kind(), arrays, values.updateCounts(), values.updates());
  }

  private static Optimizer adam() {
    return Optimizer.adam().build();
  }

  private static Optimizer momentum(float momentum) {
    return Optimizer.sgd()
        .setLearningRateTracker(Tracker.fixed(0.1f))
        .optMomentum(momentum)
        .build();
  }

  /// An optimizer that keeps an average of the weights, as Lookahead does.
  private static class Averaging extends Adam {
    private final Map<String, NDArray> slow = new HashMap<>();

    Averaging() {
      super(Optimizer.adam());
    }

    @Override
    public void update(String parameterId, NDArray weight, NDArray gradient) {
      super.update(parameterId, weight, gradient);
      slow.put(parameterId, weight);
    }
  }

  private static final class Derived extends Averaging {}

  private static final class Counting extends Adam {
    private int steps;

    Counting() {
      super(Optimizer.adam());
    }

    @Override
    public void update(String parameterId, NDArray weight, NDArray gradient) {
      steps++;
      super.update(parameterId, weight, gradient.mul(1f / steps));
    }
  }

  /// An optimizer without state of its own: its fields are constant or transient.
  private static final class Settings extends Adam {
    private static final Map<String, Float> FACTORS = Map.of();

    private record Scale(float factor, String name) {}

    private final float bound = 1;
    private final Scale scale = new Scale(1, "all");
    private final Tracker tracker = Tracker.fixed(1);
    private transient int calls;

    Settings() {
      super(Optimizer.adam());
    }

    @Override
    public void update(String parameterId, NDArray weight, NDArray gradient) {
      calls++;
      float factor = FACTORS.getOrDefault(parameterId, bound) * scale.factor();
      super.update(parameterId, weight, gradient.mul(factor * tracker.getNewValue(calls)));
    }
  }

  private static final class Unknown extends Optimizer {
    Unknown() {
      super(Optimizer.sgd());
    }

    @Override
    public void update(String parameterId, NDArray weight, NDArray gradient) {}
  }

  @Test
  void arraysThatWereMadeForARestoreThatFailsAreClosed() {
    try (Training training = new Training(Training.perceptron(), adam());
        Training other = new Training(Training.perceptron(), adam())) {
      training.steps(0, 1);
      SavedOptimizer<NDArray> saved = OptimizerState.of(training.trainer).values();
      SequencedMap<String, ArrayKind> kinds = new LinkedHashMap<>();
      saved.arrays().forEach((name, array) -> kinds.put(name, ArrayKind.of(array)));
      StateReplacement replacement =
          OptimizerState.of(other.trainer)
              .replace(
                  new SavedOptimizer<>(saved.kind(), kinds, saved.updateCounts(), saved.updates()));
      List<NDArray> made =
          replacement.targets().values().stream().flatMap(Collection::stream).toList();
      assertThat(made).hasSize(12).noneMatch(array -> ((PtNDArray) array).isReleased());
      replacement.close();
      assertThat(made).allMatch(array -> ((PtNDArray) array).isReleased());
    }
  }

  @Test
  void aStepIsNoticedAlsoAfterAParameterWasFrozen() {
    try (Training training = new Training(Training.perceptron(), adam())) {
      training.steps(0, 1);
      OptimizerState state = OptimizerState.of(training.trainer);
      state.takeCounts();
      training.model.getBlock().getParameters().valueAt(0).freeze(true);
      assertThat(state.isStepped()).isFalse();
      training.steps(1, 2);
      assertThat(state.isStepped()).isTrue();
    }
  }
}
