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

/// The training of [ResumeMidEpoch] on images in files. It is killed, resumed, and compared with
/// an uninterrupted training.
///
/// @param records whether the images are in TFRecord files; else in raw shards
/// @param images the folder of the images
record DemoTraining(boolean records, Path images) {
  static final int STEPS_PER_EPOCH = 63;

  /// The largest difference of two trainings with the same seed on a GPU. cuDNN adds up in an order
  /// that changes from run to run, which moved the loss of one step by 2e-7 (measured on an H200),
  /// and every step builds on the previous one.
  static final float GPU_TOLERANCE = 0.02f;

  static final int SEED = 1;

  /// The resumed training has another seed than the child, so that its random numbers must come
  /// from the checkpoint.
  private static final int OTHER_SEED = 2;

  private static final int FILES = 4;
  private static final int STEPS_PER_SAVE = 20;

  /// How many checkpoints are saved before the kill; this is more than are kept.
  private static final int SAVES_BEFORE = 5;

  /// How many saves to wait for a moment in which a save is in progress.
  private static final int SAVES_OF_PATIENCE = 10;

  /// The least number of steps after the kill, with which the network can learn its images.
  private static final int STEPS_AFTER = 200;

  /// The result of a training, or of the part of it that this process ran.
  ///
  /// @param losses the loss of each step that this process ran, in order
  /// @param parameters all values of the parameters at the end
  /// @param accuracy the fraction of the last epoch's images that were classified correctly; 0 if
  ///     it is not known
  record Run(Device device, List<Float> losses, List<Float> parameters, float accuracy) {}

  /// A training that was killed and resumed.
  ///
  /// @param killed the last step that the killed process reported
  /// @param restored the step of the checkpoint from which this process resumed
  /// @param leftovers how many files the unfinished save had left, all removed now
  /// @param uninterrupted the same training without a kill
  record Trial(long killed, int restored, int leftovers, Run uninterrupted) {}

  /// Trains a model by one of the samples.
  interface Sample {
    void train(Model model, DefaultTrainingConfig config) throws IOException, TranslateException;
  }

  /// Writes the images of [WriteShards]. Both formats hold the same images in the same order.
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

  /// Trains up to this number of epochs, from the latest checkpoint in `checkpoints` if there is
  /// one.
  ///
  /// @param seed the seed of the random numbers; a checkpoint replaces it
  /// @param steps receives the number of each step of this process, from 1
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

  /// Kills a training in another JVM, resumes it in this JVM, and compares it with an
  /// uninterrupted training.
  ///
  /// @param folder the parent of the two folders of checkpoints
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

  /// @throws CheckFailedException if they differ by more than two trainings on the device may
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

  /// Compares the losses of two trainings, one of which may be longer.
  ///
  /// @return how many steps were compared
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
