// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ai.djl.ndarray.NDManager;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.Optimizers;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.TensorTransform;
import dev.gantry.formats.internal.files.FolderEntries;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.internal.torch.NewDcp;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// Trainings that continue from a folder of torch.distributed.checkpoint.
@ExtendWith(NoLeaks.class)
class DcpTrainingTest {
  /// The folder that its `make.py` has made.
  private static final Path FROM_TORCH = Path.of("src/test/resources/dcp-training");

  /// PyTorch's names of the same layers.
  private static final ParameterNames NAMES =
      ParameterNames.builder()
          .rule("01Linear_{kind}", "0.{kind}")
          .rule("02BatchNorm_gamma", "1.weight")
          .rule("02BatchNorm_beta", "1.bias")
          .rule("02BatchNorm_runningMean", "1.running_mean")
          .rule("02BatchNorm_runningVar", "1.running_var")
          .rule("04Linear_{kind}", "3.{kind}")
          .ignore("{layer}.num_batches_tracked")
          .build();

  @TempDir(factory = InMemory.class)
  private Path temporary;

  private static Block block() {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(10).build())
        .add(BatchNorm.builder().build())
        .add(Activation.reluBlock())
        .add(Linear.builder().setUnits(3).build());
  }

  private static SaveRequest.Builder request(Training training) {
    return SaveRequest.builder()
        .setStep(5)
        .setModel(training.model)
        .optTrainer(training.trainer)
        .optEpoch(2);
  }

  @Test
  void aTrainingOfPyTorchGoesOnWithItsLosses() throws IOException {
    try (Training training = new Training(block(), Optimizers.adam())) {
      assertThat(Checkpoints.restoreDcp(FROM_TORCH.resolve("saved"), training.trainer, NAMES))
          .containsEntry("epoch", "2")
          .containsEntry("optimizer.param_groups.0.lr", "0.01");
      List<Integer> losses = training.steps(5, 10);
      List<String> theirs = Files.readAllLines(FROM_TORCH.resolve("losses.txt"));
      for (int i = 0; i < losses.size(); i++) {
        assertThat(Float.intBitsToFloat(losses.get(i)))
            .isCloseTo(Float.parseFloat(theirs.get(i)), within(2e-6f));
      }
    }
  }

  @Test
  void aTrainingGoesOnAsIfItHadNotStopped() {
    ParameterNames names =
        ParameterNames.builder()
            .rule("01Linear_weight", "a.weight", TensorTransform.permute(1, 0))
            .rule("01Linear_bias", "a.bias")
            .restBySameName()
            .build();
    Path folder = temporary.resolve("saved");
    List<Integer> losses;
    try (Training training = new Training(block(), Optimizers.adam())) {
      training.steps(0, 5);
      SaveRequest request =
          request(training).optMetric("loss", 0.5).optMetadata("who", "me").build();
      NDManager manager = training.model.getNDManager();
      int before = manager.getManagedArrays().size();
      Checkpoints.saveDcp(request, names, folder);
      assertThat(manager.getManagedArrays()).hasSize(before);
      losses = training.steps(5, 9);
    }
    assertThat(Weights.open(folder).tensors().keySet())
        .contains(
            "model.a.weight",
            "model.02BatchNorm_runningMean",
            "optimizer.state.a.weight.exp_avg",
            "optimizer.state.a.weight.exp_avg_sq",
            "optimizer.state.04Linear_bias.step")
        .doesNotContain("optimizer.state.02BatchNorm_runningMean.step");
    try (Training training = new Training(block(), Optimizers.adam())) {
      training.steps(0, 2);
      // Its gradients wait for a step that the restored training does not make.
      training.backward(2);
      assertThat(Checkpoints.restoreDcp(folder, training.trainer, names))
          .isEqualTo(Map.of("step", "5", "epoch", "2", "metrics.loss", "0.5", "notes.who", "me"));
      assertThat(training.steps(5, 9)).isEqualTo(losses);
    }
    try (Training training = new Training(block(), Optimizers.adam())) {
      assertThatThrownBy(() -> Checkpoints.restoreDcp(folder, training.trainer, NAMES))
          .isInstanceOf(MisuseException.class)
          // There are no options that could be advised.
          .hasMessageEndingWith("and 4 more; ignore(…) in the names leaves tensors out");
      assertThatThrownBy(() -> Checkpoints.saveDcp(request(training).build(), names, folder))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(".distcp is there");
    }
  }

  @ParameterizedTest
  @EnumSource(SaveMode.class)
  void aSaverWritesFoldersOfPyTorchAmongItsCheckpoints(SaveMode mode) throws IOException {
    Path run = temporary.resolve("run");
    List<Integer> losses;
    try (Training training = new Training(block(), Optimizers.adam());
        CheckpointSaver saver =
            CheckpointSaver.builder()
                .setPath(run)
                .optDcp(NAMES)
                .optKeepLast(1)
                .optMode(mode)
                .build()) {
      saver.prepare(training.model, training.trainer).join();
      training.steps(0, 4);
      saver.save(4, training.model, training.trainer).join();
      training.steps(4, 5);
      var _ = saver.save(request(training).optMetric("loss", 0.5).build());
      losses = training.steps(5, 9);
      saver.await();
    }
    // The first checkpoint was removed with all of its files.
    assertThat(FolderEntries.of(run).stream().map(each -> each.getFileName().toString()))
        .containsExactlyInAnyOrder(".gantry.lock", "gantry-step-5");
    Path folder = run.resolve("gantry-step-5");
    assertThat(folder.resolve("__0_0.distcp")).exists();
    try (Training training = new Training(block(), Optimizers.adam())) {
      assertThat(Checkpoints.restoreDcp(folder, training.trainer, NAMES))
          .isEqualTo(Map.of("step", "5", "epoch", "2", "metrics.loss", "0.5"));
      assertThat(training.steps(5, 9)).isEqualTo(losses);
    }
    try (Training training = new Training(block(), Optimizers.adam());
        CheckpointSaver saver = CheckpointSaver.builder().setPath(run).build()) {
      assertThat(saver.restoreLatest(training.model, training.trainer)).isPresent();
      assertThat(training.steps(5, 9)).isEqualTo(losses);
    }
  }

  @Test
  void aTrainerOfAnotherModelIsRefused() {
    Path folder = temporary.resolve("other");
    try (Training training = new Training(block(), Optimizers.adam());
        Training other = new Training(block(), Optimizers.adam())) {
      SaveRequest request = request(training).optTrainer(other.trainer).build();
      assertThatThrownBy(() -> Checkpoints.saveDcp(request, ParameterNames.same(), folder))
          .isInstanceOf(MisuseException.class)
          .hasMessage("the trainer is not of this model");
      assertThat(folder).doesNotExist();
    }
  }

  @Test
  void aSaverRefusesWhatPyTorchKeepsOtherwiseBeforeItWrites() {
    Path run = temporary.resolve("refused");
    try (Training training =
            new Training(
                block(), Optimizer.rmsprop().optLearningRateTracker(Tracker.fixed(0.1f)).build());
        CheckpointSaver saver = CheckpointSaver.builder().setPath(run).optDcp(NAMES).build()) {
      training.steps(0, 1);
      assertThatThrownBy(() -> saver.save(1, training.model, training.trainer))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("RmsProp");
      assertThat(saver.list()).isEmpty();
    }
  }

  /// The program that wrote the folder had put model and optimizer into one state, under other
  /// names.
  @Test
  void modelAndOptimizerAreFoundUnderOtherNames() {
    Path folder = temporary.resolve("named");
    List<Integer> losses;
    try (Training training = new Training(block(), Optimizers.adam())) {
      training.steps(0, 5);
      Path ours = temporary.resolve("ours");
      Checkpoints.saveDcp(request(training).build(), NAMES, ours);
      rename(
          ours,
          folder,
          name -> "app.state." + name.replace("model.", "net.").replace("optimizer.", "optim."));
      losses = training.steps(5, 7);
    }
    try (Training training = new Training(block(), Optimizers.adam())) {
      var _ = Checkpoints.restoreDcp(folder, training.trainer, NAMES);
      assertThat(training.steps(5, 7)).isEqualTo(losses);
    }
  }

  @Test
  void aFolderWithoutAModelIsRefused() {
    Path folder = temporary.resolve("other");
    NewTensor tensor =
        new NewTensor(
            "weight",
            DType.U8,
            TensorShape.of(2),
            new Memory.OnHost(MemorySegment.ofArray(new byte[2])));
    var _ =
        NewDcp.of(folder, List.of(tensor)).write(GantrySession.shared(), WriteOptions.defaults());
    try (Training training = new Training(block(), Optimizers.adam())) {
      assertThatThrownBy(() -> Checkpoints.restoreDcp(folder, training.trainer, NAMES))
          .isInstanceOf(MisuseException.class)
          .hasMessage(
              folder
                  + " must have a model, whose tensors' names begin with 'model.' (its first tensor"
                  + " is 'weight')");
    }
  }

  @Test
  void anOptimizerThatPyTorchKeepsOtherwiseIsRefused() {
    try (Training training =
        new Training(
            block(), Optimizer.rmsprop().optLearningRateTracker(Tracker.fixed(0.1f)).build())) {
      training.steps(0, 1);
      assertThatThrownBy(() ->
              Checkpoints.saveDcp(
                  request(training).build(), ParameterNames.same(), temporary.resolve("r")))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("RmsProp");
    }
  }

  @Test
  void anOptimizerWithoutStateGoesOn() {
    Path folder = temporary.resolve("sgd");
    List<Integer> losses;
    Optimizer sgd = Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.1f)).build();
    try (Training training = new Training(block(), sgd)) {
      training.steps(0, 3);
      Checkpoints.saveDcp(request(training).build(), ParameterNames.same(), folder);
      losses = training.steps(3, 5);
    }
    sgd = Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.1f)).build();
    try (Training training = new Training(block(), sgd)) {
      var _ = Checkpoints.restoreDcp(folder, training.trainer, ParameterNames.same());
      assertThat(training.steps(3, 5)).isEqualTo(losses);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "true, optimizer, max_exp_avg_sq",
    "true, optimizer, momentum_buffer",
    "false, optimizer, momentum_buffer",
    "false, optim, momentum_buffer",
    "false, optim, square_avg"
  })
  void aStateThatTheOptimizerDoesNotKeepIsRefused(boolean adam, String optimizer, String state) {
    Path ours = temporary.resolve("ours");
    Path folder = temporary.resolve("unknown");
    try (Training training = new Training(block(), Optimizers.adam())) {
      training.steps(0, 3);
      Checkpoints.saveDcp(request(training).build(), NAMES, ours);
    }
    rename(
        ours,
        folder,
        name ->
            !adam && name.endsWith("exp_avg")
                ? ""
                : name.replace("optimizer", optimizer).replaceAll("exp_avg_sq$", state));
    Optimizer sgd = Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.1f)).build();
    try (Training training = new Training(block(), adam ? Optimizers.adam() : sgd)) {
      assertThatThrownBy(() -> Checkpoints.restoreDcp(folder, training.trainer, NAMES))
          .isInstanceOf(MisuseException.class)
          .hasMessageStartingWith(
              folder + " must have the state of an optimizer like the trainer's")
          .hasMessageContaining("(has '" + optimizer + ".state.")
          .hasMessageContaining("." + state);
    }
  }

  /// Writes a folder with other names. Tensors whose new name is empty are left out.
  private static void rename(Path from, Path to, UnaryOperator<String> names) {
    GantrySession session = GantrySession.shared();
    WeightsCatalogue saved = WeightsFormats.open(session, Location.of(from));
    List<NewTensor> tensors =
        saved.tensors().values().stream()
            .filter(tensor -> !names.apply(tensor.name()).isEmpty())
            .map(tensor ->
                new NewTensor(
                    names.apply(tensor.name()),
                    tensor.dtype(),
                    tensor.shape(),
                    new Memory.OnHost(MemorySegment.ofArray(bytes(tensor)))))
            .toList();
    var _ = NewDcp.of(to, tensors).write(session, WriteOptions.defaults());
  }

  private static byte[] bytes(StoredTensor tensor) {
    byte[] bytes = new byte[Math.toIntExact(tensor.bytes())];
    try (FileBytes file = FileBytes.open(GantrySession.shared(), tensor.extent().file())) {
      file.readFully(ByteBuffer.wrap(bytes), tensor.extent().offset());
    }
    return bytes;
  }
}
