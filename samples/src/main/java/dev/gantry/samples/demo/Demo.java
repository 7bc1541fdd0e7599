// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.translate.TranslateException;
import dev.gantry.samples.ServeModel;
import dev.gantry.samples.demo.DemoTraining.Samples;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/// The tour. It makes weights, loads them and checks every byte, lets a model answer from loaded weights,
/// kills a training and resumes it from its last checkpoint, with samples in memory, in raw shards and
/// in TFRecord files, and loads and saves a file by DJL's own code for comparison.
///
/// `FOLDER` is empty, and needs room for twice `BYTES`:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' dev.gantry.samples.demo.Demo FOLDER BYTES
/// ```
public final class Demo {
  /// The least that [#run] can be asked for.
  public static final long MIN_BYTES = 1 << 20;

  /// Well above 10 %, which guessing gives, and well below what the network reaches.
  private static final float MIN_ACCURACY = 0.7f;

  private final Path folder;
  private final PrintWriter out;

  private Demo(Path folder, PrintWriter out) {
    this.folder = folder;
    this.out = out;
  }

  public static void main(String[] arguments) throws IOException, TranslateException {
    run(
        Path.of(arguments[0]),
        Long.parseLong(arguments[1]),
        new PrintWriter(System.out, true, System.out.charset()));
  }

  /// @param folder gets all files
  /// @param bytes how large the weights are, nearly
  /// @throws IOException if there is no room; nothing is written then
  /// @throws CheckFailedException if something is not as it must be
  public static void run(Path folder, long bytes, PrintWriter out)
      throws IOException, TranslateException {
    new Demo(folder, out).run(bytes);
  }

  private void run(long bytes) throws IOException, TranslateException {
    long room = Files.getFileStore(folder).getUsableSpace();
    // What was made, and what is saved of it.
    if (room / 2 < bytes + (bytes >> 4)) {
      throw new IOException(
          folder + " has room for " + size(room) + ", the demo needs twice " + size(bytes));
    }
    Device device = Engine.getInstance().defaultDevice();
    long start = System.nanoTime();
    DemoWeights weights = DemoWeights.write(folder, bytes);
    say(
        "made    %s: %d tensors, %s of random BF16 and F32, in %.1f s",
        folder, weights.digests().size(), size(weights.bytes()), (System.nanoTime() - start) / 1e9);
    Comparison.Trial whole = Comparison.load(folder, device, weights::check);
    say(
        "loaded  to %s; SHA-256 of all %d tensors, read from the loaded memory, is that of what"
            + " was written",
        name(device), weights.digests().size());
    answer();
    var _ = kill(new DemoTraining(Samples.POINTS, folder), folder.resolve("points"));
    DemoTraining.Run fromShards = learn(Samples.SHARDS, "raw shards");
    DemoTraining.Run fromRecords = learn(Samples.TFRECORD, "TFRecord files");
    say(
        "equal   to what came from raw shards, %s: the first %d losses; the order of the images"
            + " depends on the seed, and not on the kind of file%n",
        KillTrial.agreement(device), KillTrial.compareBeginnings(fromShards, fromRecords));
    new Comparison(weights, device, out).print(whole, folder.resolve("saved"));
  }

  private void answer() throws IOException, TranslateException {
    Path digits = DigitAnswers.extract(folder);
    DigitAnswers expected = DigitAnswers.of(digits);
    double difference = expected.difference(ServeModel.answer(digits, expected.questions()));
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
        expected.count(), difference, expected.tolerance());
  }

  private KillTrial kill(DemoTraining training, Path checkpoints)
      throws IOException, TranslateException {
    KillTrial trial = KillTrial.run(training, Files.createDirectory(checkpoints));
    Device device = trial.uninterrupted().device();
    say(
        "killed  a training on %s in another JVM, by SIGKILL in its step %d: the latest checkpoint"
            + " was of step %d",
        name(device), trial.killed(), trial.restored());
    say(
        "resumed from there in this JVM, %d file(s) of an unfinished save removed; made %d more"
            + " steps",
        trial.leftovers(), trial.stepsResumed());
    say(
        "equal   to a training that was not killed, %s: the %d losses, and the %d parameters at"
            + " the end",
        KillTrial.agreement(device),
        trial.stepsResumed(),
        trial.uninterrupted().parameters().size());
    return trial;
  }

  private DemoTraining.Run learn(Samples samples, String words)
      throws IOException, TranslateException {
    Path place =
        Files.createDirectory(folder.resolve("from-" + samples.name().toLowerCase(Locale.ROOT)));
    DemoTraining training = new DemoTraining(samples, place.resolve("images"));
    DemoImages.write(samples, training.images());
    say(
        "made    %d images of %d classes as %s, and %d others to test with",
        DemoImages.TRAINING_FILES * DemoImages.IMAGES_PER_FILE,
        DemoTraining.CLASSES,
        words,
        DemoImages.TEST_FILES * DemoImages.IMAGES_PER_FILE);
    KillTrial trial = kill(training, place.resolve("checkpoints"));
    say(
        "        step %d was number %d of the %d in its epoch: the dataset, too, went on from"
            + " there, in its random order",
        trial.restored(), trial.restored() % samples.stepsPerEpoch, samples.stepsPerEpoch);
    DemoTraining.Run run = trial.uninterrupted();
    float accuracy = run.metrics().getOrDefault(DemoTraining.ACCURACY, 0f);
    if (accuracy < MIN_ACCURACY) {
      throw new CheckFailedException(
          String.format(
              Locale.ROOT,
              "the network tells only %.0f%% of the test images right, less than %.0f%%",
              100 * accuracy,
              100 * MIN_ACCURACY));
    }
    say(
        "learned %.0f%% of the test images are told right after %d steps; chance gives %d%%",
        100 * accuracy, run.losses().size(), 100 / DemoTraining.CLASSES);
    return run;
  }

  private void say(String format, Object... values) {
    out.printf(Locale.ROOT, format + "%n", values);
    out.flush();
  }

  static String name(Device device) {
    return device.isGpu() ? "cuda:" + device.getDeviceId() : "host";
  }

  static String size(long bytes) {
    return String.format(Locale.ROOT, "%,d MB", Math.round(bytes / 1e6));
  }
}
