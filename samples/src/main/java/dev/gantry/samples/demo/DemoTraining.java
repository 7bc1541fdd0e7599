// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.pytorch.jni.JniUtils;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.Trainer;
import ai.djl.training.evaluator.Accuracy;
import ai.djl.training.listener.EpochTrainingListener;
import ai.djl.training.listener.EvaluatorTrainingListener;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Adam;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.Checkpoints;
import dev.gantry.djl.GantryDataset;
import dev.gantry.djl.IndexUse;
import dev.gantry.djl.TfRecordDataset;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordShards;
import dev.gantry.samples.ResumeMidEpoch;
import dev.gantry.samples.TrainFromShards;
import dev.gantry.samples.WriteShards;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.IntConsumer;
import java.util.stream.Stream;

/// The training of [ResumeMidEpoch] on images in files, which is killed, resumed, and compared with one that was not.
///
/// @param records whether the images are in TFRecord files; else in raw shards
/// @param images the folder of the images
record DemoTraining(boolean records, Path images) {
  static final int STEPS_PER_EPOCH = 63;

  /// Two trainings of one seed may differ by this much on a GPU. There they differ by themselves: cuDNN adds up in an order
  /// that changes from run to run, which moved the loss of one step by 2e-7 (measured on an H200), and each step begins
  /// with what the one before left.
  static final float GPU_TOLERANCE = 0.02f;

  static final int SEED = 1;

  /// A resumed training has another seed than the child: what comes after must come from the checkpoint.
  private static final int OTHER_SEED = 2;

  private static final int FILES = 4;
  private static final int STEPS_PER_SAVE = 20;

  /// The checkpoints that are saved before the kill: more than are kept.
  private static final int SAVES_BEFORE = 5;

  /// How long to wait for a moment in which another save is under way.
  private static final int SAVES_OF_PATIENCE = 10;

  /// At least so many come after the step of the kill: enough for the network to learn its images.
  private static final int STEPS_AFTER = 200;

  /// The result of a training, or of the part of one that this process made.
  ///
  /// @param losses of each step that was made, in order
  /// @param parameters all values at the end
  /// @param accuracy the part of the last epoch's images that were told right; 0 where nothing says
  record Run(Device device, List<Float> losses, List<Float> parameters, float accuracy) {}

  /// A training that was killed and resumed.
  ///
  /// @param killed the last step that it told of
  /// @param restored the step of the checkpoint from which this process resumed
  /// @param leftovers files of a save that never ended, which are gone now
  /// @param uninterrupted the same training from beginning to end
  record Trial(long killed, int restored, int leftovers, Run uninterrupted) {}

  /// Trains a model by one of the samples.
  interface Sample {
    void train(Model model, DefaultTrainingConfig config) throws IOException, TranslateException;
  }

  /// Writes the images of [WriteShards]. The files of both kinds hold the same ones in the same order.
  void writeImages() throws IOException {
    if (!records) {
      var _ = WriteShards.write(images);
      return;
    }
    Files.createDirectory(images);
    SplittableRandom random = new SplittableRandom(1);
    try (TfRecordShards writer = TfRecordShards.create(images, "train", FILES, Compression.NONE)) {
      for (int i = 0; i < WriteShards.SAMPLES; i++) {
        int label = random.nextInt(WriteShards.CLASSES);
        ExampleBuilder example =
            new ExampleBuilder()
                .bytes("image", WriteShards.image(label, random))
                .int64s("label", label);
        writer.write(i / (WriteShards.SAMPLES / FILES), MemorySegment.ofArray(example.toBytes()));
      }
      writer.commit();
    }
  }

  private GantryDataset dataset() {
    return records
        ? TfRecordDataset.builder()
            .setPath(images.toString())
            .addFeature(FeatureSpec.bytes("image", 1, 16, 16))
            .addFeature(FeatureSpec.int64s("label"))
            .optIndex(IndexUse.BUILD)
            .setSampling(32)
            .optShuffle(42)
            .optNormalize("image", 1 / 255f, 0)
            .build()
        : TrainFromShards.images(images);
  }

  /// Trains until so many epochs are made, from the latest checkpoint in `checkpoints` if there is one.
  ///
  /// @param seed of the random numbers, which a checkpoint overrules
  /// @param steps is told the number of each step that was made, from 1
  Run run(Path checkpoints, int epochs, int seed, IntConsumer steps)
      throws IOException, TranslateException {
    return run(
        TrainFromShards.block(),
        seed,
        (model, config) -> {
          config
              .addEvaluator(new Accuracy())
              .addTrainingListeners(new EpochTrainingListener(), new EvaluatorTrainingListener());
          try (GantryDataset train = dataset()) {
            ResumeMidEpoch.train(model, config, checkpoints, train, null, epochs);
          }
        },
        steps);
  }

  /// Trains with Adam on the first GPU or, where DJL knows of none, on the CPU.
  static Run run(Block block, int seed, Sample sample, IntConsumer steps)
      throws IOException, TranslateException {
    Device device = Engine.getInstance().defaultDevice();
    Engine.getInstance().setRandomSeed(seed);
    // Operators this small gain nothing from more threads, and where others use the cores, too,
    // threads that wait for one another take several times as long.
    int threads = JniUtils.getNumThreads();
    JniUtils.setNumThreads(1);
    try (Model model = Model.newInstance("sample", device)) {
      model.setBlock(block);
      Recorder recorder = new Recorder(steps);
      sample.train(
          model,
          new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
              .optOptimizer(Adam.builder().build())
              .optDevices(new Device[] {device})
              .addTrainingListeners(recorder));
      List<Float> parameters = new ArrayList<>();
      for (Parameter parameter : block.getParameters().values()) {
        for (float value : parameter.getArray().toFloatArray()) {
          parameters.add(value);
        }
      }
      return new Run(device, recorder.losses, parameters, recorder.accuracy);
    } finally {
      JniUtils.setNumThreads(threads);
    }
  }

  private static final class Recorder extends TrainingListenerAdapter {
    private final IntConsumer steps;
    private final List<Float> losses = new ArrayList<>();
    private float accuracy;

    Recorder(IntConsumer steps) {
      this.steps = steps;
    }

    @Override
    public void onTrainingBatch(Trainer trainer, BatchData batch) {
      Map<Device, NDList> labels = batch.getLabels();
      batch
          .getPredictions()
          .forEach((device, predictions) -> {
            NDList wanted = labels.getOrDefault(device, new NDList());
            try (NDArray loss = trainer.getLoss().evaluate(wanted, predictions)) {
              losses.add(loss.getFloat());
            }
          });
      steps.accept(losses.size());
    }

    @Override
    public void onEpoch(Trainer trainer) {
      Float evaluated = trainer.getTrainingResult().getTrainEvaluation("Accuracy");
      accuracy = evaluated == null ? 0 : evaluated;
    }
  }

  /// Kills a training in another JVM, resumes it in this one, and compares it with one that was not killed.
  ///
  /// @param folder where to make two folders of checkpoints
  /// @throws CheckFailedException if the two trainings differ
  Trial killAndResume(Path folder) throws IOException, TranslateException {
    Path checkpoints = folder.resolve("killed");
    long killed = trainAndKill(checkpoints);
    int restored = latest(checkpoints);
    int leftovers = leftovers(checkpoints).size();
    int epochs = Math.toIntExact(Math.ceilDiv(killed + STEPS_AFTER, STEPS_PER_EPOCH));
    Run resumed = run(checkpoints, epochs, OTHER_SEED, _ -> {});
    if (!leftovers(checkpoints).isEmpty()) {
      throw new CheckFailedException("left by the killed save: " + leftovers(checkpoints));
    }
    Run uninterrupted = run(folder.resolve("uninterrupted"), epochs, SEED, _ -> {});
    compare(uninterrupted, resumed, restored);
    return new Trial(killed, restored, leftovers, uninterrupted);
  }

  private long trainAndKill(Path checkpoints) throws IOException {
    try (TrainingChild child = TrainingChild.start(this, checkpoints)) {
      long step = child.step();
      while (latest(checkpoints) < SAVES_BEFORE * STEPS_PER_SAVE) {
        step = child.step();
      }
      // On a fast disk a save may end before the next step is told of. A save is under way while
      // the checkpoint that was
      // due last is not there yet.
      long patience = step + SAVES_OF_PATIENCE * STEPS_PER_SAVE;
      while (latest(checkpoints) >= (step - 1) / STEPS_PER_SAVE * STEPS_PER_SAVE
          && step < patience) {
        step = child.step();
      }
      child.kill();
      return step;
    }
  }

  /// The step of the latest checkpoint; 0 where there is none.
  static int latest(Path checkpoints) {
    return Checkpoints.at(checkpoints).list().stream()
        .mapToInt(checkpoint -> Math.toIntExact(checkpoint.step()))
        .max()
        .orElse(0);
  }

  /// Returns the files in the folders of unfinished checkpoints: without a manifest, a checkpoint
  /// does not exist.
  private static List<Path> leftovers(Path checkpoints) throws IOException {
    try (Stream<Path> files = Files.walk(checkpoints)) {
      return files
          .filter(Files::isRegularFile)
          .filter(file -> !checkpoints.equals(file.getParent()))
          .filter(file -> Files.notExists(file.resolveSibling("manifest.json")))
          .toList();
    }
  }

  /// @throws CheckFailedException if they differ by more than trainings on their device do
  static void compare(Run uninterrupted, Run resumed, int restored) {
    List<Float> losses = uninterrupted.losses();
    Device device = uninterrupted.device();
    require(
        "the losses after step " + restored,
        losses.subList(restored, losses.size()),
        resumed.losses(),
        device);
    require("the parameters", uninterrupted.parameters(), resumed.parameters(), device);
  }

  /// Compares the losses of trainings of which one may be longer.
  ///
  /// @return of how many steps
  static int compareBeginnings(Run one, Run other) {
    int steps = Math.min(one.losses().size(), other.losses().size());
    require(
        "the losses of the first " + steps + " steps",
        one.losses().subList(0, steps),
        other.losses().subList(0, steps),
        one.device());
    return steps;
  }

  private static void require(String what, List<Float> some, List<Float> others, Device device) {
    float most = device.isGpu() ? GPU_TOLERANCE : 0;
    boolean agree = some.size() == others.size();
    for (int i = 0; agree && i < some.size(); i++) {
      agree =
          some.get(i).equals(others.get(i))
              || (most > 0 && Math.abs(some.get(i) - others.get(i)) <= most);
    }
    if (!agree) {
      throw new CheckFailedException(what + " of two trainings are not the same");
    }
  }
}
