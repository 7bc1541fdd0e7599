// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.translate.TranslateException;
import dev.gantry.cli.internal.demo.Agreement;
import dev.gantry.cli.internal.demo.CheckFailedException;
import dev.gantry.cli.internal.demo.Comparison;
import dev.gantry.cli.internal.demo.DigitAnswers;
import dev.gantry.cli.internal.demo.ImageFiles;
import dev.gantry.cli.internal.demo.ImageTraining;
import dev.gantry.cli.internal.demo.KillTrial;
import dev.gantry.cli.internal.demo.PointTraining;
import dev.gantry.cli.internal.demo.SampleImages;
import dev.gantry.cli.internal.demo.SampleTraining;
import dev.gantry.cli.internal.demo.SampleWeights;
import dev.gantry.cli.internal.demo.TrainingRun;
import dev.gantry.cli.internal.demo.Trial;
import dev.gantry.cli.internal.digest.ArrayDigest;
import dev.gantry.cli.internal.process.TemporaryFolder;
import dev.gantry.samples.ServeModel;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `demo`: the tour. It makes weights, loads them and checks every byte, lets a model answer from
/// loaded weights, kills a training and resumes it from its last checkpoint, with samples in memory,
/// in raw shards and in TFRecord files, and loads and saves a file by DJL's own code for comparison.
@Command(
    name = "demo",
    description =
        "Makes weights in a temporary folder, loads them, kills trainings and resumes them,"
            + " checks and compares.")
final class DemoCommand implements Callable<Integer> {
  /// Well above 10 %, which guessing gives, and well below what the network reaches.
  private static final float LEAST_ACCURACY = 0.7f;

  @Spec private CommandSpec spec;

  @Option(
      names = "--dir",
      paramLabel = "FOLDER",
      description = "Where the temporary folder is made; the system's place for such by default.")
  private @Nullable Path parent;

  @Option(
      names = "--bytes",
      paramLabel = "N",
      defaultValue = "2000000000",
      description = "How large the weights are, nearly; ${DEFAULT-VALUE} by default.")
  private long bytes;

  @Option(names = "--keep", description = "Leave the temporary folder there.")
  private boolean keep;

  @Override
  public Integer call() throws IOException, TranslateException {
    if (bytes < SampleWeights.LEAST_BYTES) {
      throw usage("--bytes must be at least " + SampleWeights.LEAST_BYTES + " (was " + bytes + ")");
    }
    if (parent != null && !Files.isDirectory(parent)) {
      throw usage("--dir must be a folder (was " + parent + ")");
    }
    try (TemporaryFolder folder = TemporaryFolder.create("gantry-demo-", parent, keep)) {
      run(folder.path());
    }
    return 0;
  }

  private ParameterException usage(String message) {
    return new ParameterException(spec.commandLine(), message);
  }

  private void run(Path folder) throws IOException, TranslateException {
    long room = Files.getFileStore(folder).getUsableSpace();
    // What was made, and what is saved of it.
    if (room / 2 < bytes + (bytes >> 4)) {
      throw new IOException(
          String.format(
              Locale.ROOT,
              "%s has room for %s, the demo needs twice %s",
              folder,
              Comparison.size(room),
              Comparison.size(bytes)));
    }
    Device device = Engine.getInstance().defaultDevice();
    SampleWeights sample = make(folder);
    Trial whole = load(sample, device);
    answer(folder);
    kill(new PointTraining(), folder.resolve("points"));
    learn(folder);
    compare(sample, whole, device, folder);
    say(keep ? "%s stays there." : "%s goes now.", folder);
  }

  private SampleWeights make(Path folder) throws IOException {
    long start = System.nanoTime();
    SampleWeights sample = SampleWeights.write(folder, bytes);
    say(
        "made    %s: %d tensors, %s of random BF16 and F32, in %.1f s",
        sample.index(),
        sample.digests().size(),
        Comparison.size(sample.bytes()),
        (System.nanoTime() - start) / 1e9);
    return sample;
  }

  private Trial load(SampleWeights sample, Device device) throws IOException {
    Trial trial = Trial.load(sample.index(), device, arrays -> checkDigests(sample, arrays));
    say(
        "loaded  to %s; SHA-256 of all %d tensors, read from the loaded memory, is that of what"
            + " was written",
        Comparison.name(device), sample.digests().size());
    return trial;
  }

  /// @throws CheckFailedException if the arrays are not all tensors, or not as they were written
  static void checkDigests(SampleWeights sample, NDList arrays) {
    if (arrays.size() != sample.digests().size()) {
      throw new CheckFailedException(
          arrays.size() + " tensors were loaded, of " + sample.digests().size());
    }
    for (NDArray array : arrays) {
      String digest = ArrayDigest.of(array);
      if (!digest.equals(sample.digests().get(array.getName()))) {
        throw new CheckFailedException(
            "tensor '" + array.getName() + "' was not loaded as it was written: " + digest);
      }
    }
  }

  private void answer(Path folder) throws IOException, TranslateException {
    Path digits = DigitAnswers.extract(folder);
    DigitAnswers expected = DigitAnswers.of(digits);
    double difference = expected.difference(ServeModel.answer(digits, expected.inputs()));
    if (!(difference <= expected.tolerance())) {
      throw new CheckFailedException(
          "the model's logits differ by "
              + difference
              + " from those expected, more than "
              + expected.tolerance());
    }
    say(
        "served  a DJL model from three shards that safetensors' own writer made: %d logits, off"
            + " by at most %.1e (allowed %.0e)",
        expected.logits(), difference, expected.tolerance());
  }

  private KillTrial kill(SampleTraining training, Path folder)
      throws IOException, TranslateException {
    KillTrial trial = KillTrial.run(training, Files.createDirectory(folder));
    say(
        "killed  a training on %s in another JVM, by SIGKILL in its step %d: the latest checkpoint"
            + " was of step %d",
        Comparison.name(trial.uninterrupted().device()), trial.killed().step(), trial.restored());
    say(
        "resumed from there in this JVM, %d file(s) of an unfinished save removed; made %d more"
            + " steps",
        trial.leftovers(), trial.stepsResumed());
    say(
        "equal   to a training that was not killed, %s: the %d losses, and the %d parameters at"
            + " the end",
        trial.agreement(), trial.stepsResumed(), trial.uninterrupted().parameters().size());
    return trial;
  }

  private void learn(Path folder) throws IOException, TranslateException {
    TrainingRun fromShards = learn(ImageFiles.SHARDS, folder.resolve("from-shards"));
    TrainingRun fromRecords = learn(ImageFiles.TFRECORD, folder.resolve("from-tfrecord"));
    say(
        "equal   to what came from raw shards, %s: the first %d losses; the order of the images"
            + " depends on the seed, and not on the kind of file",
        Agreement.on(fromShards.device()), KillTrial.compareBeginnings(fromShards, fromRecords));
  }

  private TrainingRun learn(ImageFiles files, Path folder) throws IOException, TranslateException {
    Files.createDirectory(folder);
    ImageTraining training = ImageTraining.prepare(files, folder.resolve("images"));
    say(
        "made    %d images of %d classes as %s, and %d others to test with",
        ImageFiles.TRAINING_FILES * ImageFiles.IMAGES_PER_FILE,
        SampleImages.CLASSES,
        files,
        ImageFiles.TEST_FILES * ImageFiles.IMAGES_PER_FILE);
    KillTrial trial = kill(training, folder.resolve("checkpoints"));
    say(
        "        step %d was number %d of the %d in its epoch: the dataset, too, went on from"
            + " there, in its random order",
        trial.restored(), trial.restored() % training.stepsPerEpoch(), training.stepsPerEpoch());
    TrainingRun run = trial.uninterrupted();
    float accuracy = run.metrics().getOrDefault(ImageTraining.ACCURACY, 0f);
    if (accuracy < LEAST_ACCURACY) {
      throw new CheckFailedException(
          "the network tells only "
              + percent(accuracy)
              + " of the test images right, less than "
              + percent(LEAST_ACCURACY));
    }
    say(
        "learned %s of the test images are told right after %d steps; chance gives %s",
        percent(accuracy), run.losses().size(), percent(1f / SampleImages.CLASSES));
    return run;
  }

  private static String percent(float share) {
    return Math.round(100 * share) + "%";
  }

  private void compare(SampleWeights sample, Trial whole, Device device, Path folder)
      throws IOException {
    Comparison comparison = Comparison.of(sample, whole, device, folder);
    say("");
    comparison.print(out());
  }

  private void say(String format, Object... values) {
    out().printf(Locale.ROOT, format + "%n", values);
    out().flush();
  }

  private PrintWriter out() {
    return spec.commandLine().getOut();
  }
}
