// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Restores of some parts of a training.
@ExtendWith(NoLeaks.class)
class PartialRestoreTest {
  private static final Shape INPUT = new Shape(2, 6);

  @TempDir(factory = InMemory.class)
  private Path folder;

  private Map<String, float[]> saved;

  @BeforeEach
  void save() {
    try (Training training = new Training(block(3), Optimizers.adam());
        CheckpointSaver saver = saver()) {
      training.steps(0, 3);
      saved = values(training.model);
      var _ = saver.save(3, training.model, training.trainer);
    }
  }

  private CheckpointSaver saver() {
    return CheckpointSaver.builder().setPath(folder).build();
  }

  private static Optimizer sgd() {
    return Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.1f)).build();
  }

  private static Block block(int classes) {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(10).build())
        .add(BatchNorm.builder().build())
        .add(Activation.reluBlock())
        .add(Linear.builder().setUnits(classes).build());
  }

  private static Map<String, float[]> values(Model model) {
    Map<String, float[]> values = new LinkedHashMap<>();
    for (var pair : model.getBlock().getParameters()) {
      values.put(pair.getKey(), pair.getValue().getArray().toFloatArray());
    }
    return values;
  }

  private RestoredTraining restore(Training into, UnaryOperator<RestoreRequest.Builder> options) {
    RestoreRequest.Builder builder =
        RestoreRequest.builder().setModel(into.model).optTrainer(into.trainer);
    try (CheckpointSaver saver = saver()) {
      return saver.restore(options.apply(builder).build()).orElseThrow();
    }
  }

  /// Checks that parameters whose names match have the saved values, and that the others have
  /// their values from before.
  private void requireRestored(
      Map<String, float[]> now, Map<String, float[]> before, String names) {
    now.forEach((path, values) ->
        assertThat(values)
            .as(path)
            .isEqualTo(path.matches(names) ? saved.get(path) : before.get(path)));
  }

  @Test
  void aNewHeadStaysAsItIsAndTheBodyGoesOn() {
    try (Training other = new Training(block(5), Optimizers.adam())) {
      Map<String, float[]> before = values(other.model);
      RestoredTraining restored = restore(other, builder -> builder.optSkipMismatched(true));
      requireRestored(values(other.model), before, "0[12].*");
      assertThat(restored.step()).isEqualTo(3);
      assertThat(restored.unused()).isEmpty();
      assertThat(restored.skipped())
          .containsOnlyKeys("04Linear_weight", "04Linear_bias")
          .containsEntry(
              "04Linear_weight", "it has shape [5, 10], and the checkpoint's has [3, 10]");
      // The body has its moments, and the head has none yet.
      assertThat(PlainState.of(other.trainer).counts())
          .containsEntry("01Linear_weight", 3)
          .doesNotContainKey("04Linear_weight");
      assertThat(other.steps(3, 5)).hasSize(2);
    }
  }

  /// They were computed through the body that has other values now.
  @Test
  void gradientsThatWaitForAStepAreGoneFromAHeadThatStaysToo() {
    try (Training other = new Training(block(5), Optimizers.adam())) {
      other.backward(7);
      restore(other, builder -> builder.optSkipMismatched(true));
      for (var pair : other.model.getBlock().getParameters()) {
        if (pair.getValue().requiresGradient()) {
          try (NDArray gradient = pair.getValue().getArray().getGradient()) {
            assertThat(gradient.toFloatArray()).as(pair.getKey()).containsOnly(0);
          }
        }
      }
    }
  }

  @Test
  void withoutTheOptionAnotherShapeIsRefusedAndNothingChanges() {
    try (Training other = new Training(block(5), Optimizers.adam())) {
      Map<String, float[]> before = values(other.model);
      assertThatThrownBy(() -> restore(other, builder -> builder.optPartial(true)))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("the saved parameter '04Linear_")
          .hasMessageEndingWith("; optSkipMismatched(true) of a RestoreRequest leaves it as it is");
      requireRestored(values(other.model), before, "none");
    }
  }

  @Test
  void anotherTypeIsRefusedWithATrainerAndCastWithoutOne() {
    Block wide = block(3);
    try (NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch")) {
      wide.initialize(manager, DataType.FLOAT64, INPUT);
      try (Training other = new Training(wide, Optimizers.adam());
          CheckpointSaver saver = saver()) {
        assertThatThrownBy(() -> saver.restore(3, other.model, other.trainer))
            .isInstanceOf(MisuseException.class)
            .hasMessageContaining("the saved parameter '0")
            .hasMessageEndingWith(
                "; only a restore of the model alone, without optTrainer, casts parameters");
        assertThat(saver.restore(3, other.model, null).step()).isEqualTo(3);
        NDArray cast = wide.getParameters().get("01Linear_weight").getArray();
        assertThat(cast.getDataType()).isEqualTo(DataType.FLOAT64);
        assertThat(cast.toType(DataType.FLOAT32, false).toFloatArray())
            .isEqualTo(saved.get("01Linear_weight"));
      }
    }
  }

  @Test
  void parametersThatOneSideLacksAreLeftOutOnRequest() {
    Block longer =
        new SequentialBlock()
            .add(Linear.builder().setUnits(10).build())
            .add(Activation.reluBlock())
            .add(Linear.builder().setUnits(4).build())
            .add(Linear.builder().setUnits(3).optBias(false).build());
    try (Training other = new Training(longer, Optimizers.adam())) {
      Map<String, float[]> before = values(other.model);
      assertThatThrownBy(() -> restore(other, builder -> builder.optSkipMismatched(true)))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("03Linear_weight");
      RestoredTraining restored =
          restore(other, builder -> builder.optSkipMismatched(true).optPartial(true));
      requireRestored(values(other.model), before, "01.*");
      assertThat(restored.skipped())
          .containsOnlyKeys("03Linear_weight", "03Linear_bias", "04Linear_weight")
          .containsEntry("03Linear_bias", "the checkpoint has no such parameter");
      assertThat(restored.unused())
          .contains("02BatchNorm_gamma", "04Linear_bias")
          .doesNotContain("04Linear_weight");
      assertThat(other.steps(3, 5)).hasSize(2);
    }
  }

  @Test
  void onlyTheParametersThatMatchAPatternAreRestored() {
    try (Training other = new Training(block(3), Optimizers.adam())) {
      other.steps(0, 1);
      Map<String, float[]> before = values(other.model);
      RestoredTraining restored =
          restore(other, builder -> builder.optParameters("01{rest*}", "{i}BatchNorm_{kind}"));
      requireRestored(values(other.model), before, "0[12].*");
      assertThat(restored.skipped())
          .containsEntry("04Linear_bias", "optParameters does not name it");
      assertThat(PlainState.of(other.trainer).counts())
          .containsEntry("01Linear_weight", 3)
          .containsEntry("04Linear_weight", 1);
      assertThatThrownBy(() -> restore(other, builder -> builder.optParameters("head{rest*}")))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("no parameter would be restored")
          .hasMessageContaining("optParameters does not name it");
    }
  }

  /// The checkpoint's head has no place there.
  @Test
  void whatIsNamedGoesIntoAModelWithoutTheRest() {
    Block body =
        new SequentialBlock()
            .add(Linear.builder().setUnits(10).build())
            .add(BatchNorm.builder().build());
    try (Training other = new Training(body, Optimizers.adam())) {
      Map<String, float[]> before = values(other.model);
      RestoredTraining restored =
          restore(other, builder -> builder.optParameters("01Linear_{kind}"));
      requireRestored(values(other.model), before, "01.*");
      assertThat(restored.skipped()).containsKey("02BatchNorm_gamma");
    }
  }

  @Test
  void theOptimizerStaysAsItIsAndMayBeAnother() {
    try (Training other = new Training(block(3), sgd())) {
      other.steps(0, 1);
      RestoredTraining restored = restore(other, builder -> builder.optOptimizer(false));
      requireRestored(values(other.model), Map.of(), ".*");
      assertThat(restored.skipped()).isEmpty();
      assertThat(PlainState.of(other.trainer).counts()).containsEntry("04Linear_weight", 1);
    }
    try (Training other = new Training(block(3), sgd())) {
      assertThatThrownBy(() -> restore(other, builder -> builder))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("optimizer Adam");
    }
  }

  @Test
  void aModelThatWasSavedAloneComesIntoATraining() {
    try (Training alone = new Training(block(3), Optimizers.adam());
        CheckpointSaver saver = saver()) {
      saved = values(alone.model);
      var _ = saver.save(SaveRequest.builder().setStep(9).setModel(alone.model).build());
    }
    try (Training other = new Training(block(3), Optimizers.adam())) {
      assertThatThrownBy(() -> restore(other, builder -> builder))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("was saved without a trainer");
      assertThat(restore(other, builder -> builder.optOptimizer(false)).step()).isEqualTo(9);
      requireRestored(values(other.model), Map.of(), ".*");
      assertThat(restore(other, builder -> builder.optStep(3)).step()).isEqualTo(3);
    }
  }

  @Test
  void aModelAloneGetsWhatFits() {
    try (Model model = Model.newInstance("model", "PyTorch");
        CheckpointSaver saver = saver()) {
      model.setBlock(block(5));
      model.getBlock().initialize(model.getNDManager(), DataType.FLOAT32, INPUT);
      Map<String, float[]> before = values(model);
      RestoredTraining restored =
          saver
              .restore(RestoreRequest.builder().setModel(model).optSkipMismatched(true).build())
              .orElseThrow();
      requireRestored(values(model), before, "0[12].*");
      assertThat(restored.skipped()).hasSize(2);
    }
    try (Model model = Model.newInstance("model", "PyTorch");
        CheckpointSaver saver = CheckpointSaver.builder().setPath(folder.resolve("none")).build()) {
      model.setBlock(block(3));
      assertThat(saver.restore(RestoreRequest.builder().setModel(model).build()))
          .isEqualTo(Optional.empty());
    }
  }

  @Test
  void weightsLeaveParametersOfOtherShapesOnRequest() {
    try (Model model = Model.newInstance("model", "PyTorch");
        Weights weights = Checkpoints.at(folder).openLatest().orElseThrow()) {
      model.setBlock(block(5));
      LoadOptions options = LoadOptions.builder().optSkipMismatched(true).build();
      for (int i = 0; i < 2; i++) {
        // The first round restores into a block without arrays, whose head is then initialised;
        // the second round restores into its arrays.
        Map<String, float[]> before = i == 0 ? Map.of() : values(model);
        LoadReport report =
            weights.load(
                model.getNDManager(), model.getBlock(), ParameterNames.same(), options, INPUT);
        assertThat(report.mismatched())
            .containsOnlyKeys("04Linear_weight", "04Linear_bias")
            .containsEntry("04Linear_weight", "[5, 10], and 04Linear_weight has [3, 10]");
        assertThat(report.missing()).isEmpty();
        assertThat(report.unexpected()).isEmpty();
        assertThat(report.loaded()).containsKey("01Linear_weight").hasSize(6);
        Map<String, float[]> now = values(model);
        assertThat(now.get("04Linear_weight")).hasSize(50);
        if (i == 1) {
          requireRestored(now, before, "0[12].*");
        }
      }
    }
  }
}
