// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import dev.gantry.samples.ServeModel;
import dev.gantry.samples.Usage;
import dev.gantry.samples.WriteShards;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Map;

/// The tour. It makes weights, loads them and checks every byte, lets a model answer from loaded weights,
/// kills a training and resumes it from its last checkpoint, once with raw shards and once with TFRecord files.
///
/// `FOLDER` is empty, and needs room for `BYTES`:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' dev.gantry.samples.demo.Demo FOLDER BYTES
/// ```
public final class Demo {
  /// The least number of bytes that [#run] accepts.
  public static final long MIN_BYTES = 1 << 20;

  private static final int TENSORS = 32;
  private static final int TENSORS_PER_FILE = 8;
  private static final long MAX_TENSOR_BYTES = 64_000_000;
  private static final long COLUMNS = 1024;

  /// This is well above the 10 % of guessing, and well below what the network reaches.
  private static final float MIN_ACCURACY = 0.7f;

  private final Path folder;
  private final PrintWriter out;
  private final Device device = Engine.getInstance().defaultDevice();

  private Demo(Path folder, PrintWriter out) {
    this.folder = folder;
    this.out = out;
  }

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("Demo FOLDER BYTES", arguments);
    run(
        Path.of(arguments[0]),
        Long.parseLong(arguments[1]),
        new PrintWriter(System.out, true, System.out.charset()));
  }

  /// @param folder the folder for all files
  /// @param bytes the approximate size of the weights
  /// @throws IOException if the disk has too little space; nothing is written then
  /// @throws CheckFailedException if a check fails
  public static void run(Path folder, long bytes, PrintWriter out)
      throws IOException, TranslateException {
    long room = Files.getFileStore(folder).getUsableSpace();
    if (room < bytes) {
      throw new IOException(
          "%s has room for %,d bytes, the demo needs %,d".formatted(folder, room, bytes));
    }
    Demo demo = new Demo(folder, out);
    demo.load(makeWeights(folder, bytes));
    demo.answer();
    DemoTraining.Run shards = demo.train(false);
    int steps = DemoTraining.compareBeginnings(shards, demo.train(true));
    demo.say("The first %d losses from both kinds of files are equal.", steps);
  }

  /// Writes random tensors. Each is a window of the same memory and begins one value after the
  /// previous one. All tensors differ, and together they take little more memory than one.
  ///
  /// @return the SHA-256 of each tensor, by name
  static Map<String, String> makeWeights(Path folder, long bytes) throws IOException {
    long rows = Math.min(bytes / TENSORS, MAX_TENSOR_BYTES) / (COLUMNS * Float.BYTES);
    long tensorBytes = rows * COLUMNS * Float.BYTES;
    long count = bytes / tensorBytes;
    Map<String, String> digests = new HashMap<>();
    try (NDManager manager = NDManager.newBaseManager(Device.cpu())) {
      NDArray values = manager.randomNormal(new Shape(rows * COLUMNS + count));
      NDList tensors = new NDList();
      for (long i = 0; i < count; i++) {
        NDIndex window = new NDIndex("{}:{}", i, i + rows * COLUMNS);
        NDArray tensor = values.get(window).reshape(rows, COLUMNS);
        tensor.setName("layers." + i + ".weight");
        tensors.add(tensor);
        digests.put(tensor.getName(), sha256(tensor));
      }
      WeightsWriter.builder()
          .setFolder(folder)
          .optFileBytes(TENSORS_PER_FILE * tensorBytes)
          .build()
          .write(tensors);
    }
    return digests;
  }

  private void load(Map<String, String> digests) {
    StringBuilder transports = new StringBuilder();
    LoadOptions options =
        LoadOptions.builder()
            .optReport(report -> transports.append(report.bytesByTransport()))
            .build();
    try (NDManager manager = NDManager.newBaseManager(device);
        Weights weights = Weights.open(folder)) {
      long start = System.nanoTime();
      NDList arrays = weights.load(manager, options);
      double seconds = (System.nanoTime() - start) / 1e9;
      check(arrays, digests);
      say(
          "Loaded %d tensors of %,d bytes to %s in %.3f s, by %s; the SHA-256 of each is that of"
              + " what was written.",
          arrays.size(), weights.totalBytes(), name(device), seconds, transports);
    }
  }

  /// @throws CheckFailedException if a tensor is missing, or differs from what was written
  static void check(NDList arrays, Map<String, String> digests) {
    if (arrays.size() != digests.size()) {
      throw new CheckFailedException(arrays.size() + " tensors were loaded, of " + digests.size());
    }
    for (NDArray array : arrays) {
      if (!sha256(array).equals(digests.get(array.getName()))) {
        throw new CheckFailedException(
            "tensor '" + array.getName() + "' was not loaded as it was written");
      }
    }
  }

  private static String sha256(NDArray array) {
    try {
      MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
      sha256.update(array.toByteBuffer(true));
      return HexFormat.of().formatHex(sha256.digest());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  private void answer() throws IOException, TranslateException {
    Path digits = DigitAnswers.extract(folder);
    DigitAnswers expected = DigitAnswers.of(digits);
    double difference = expected.difference(ServeModel.answer(digits, expected.questions()));
    if (!(difference <= expected.tolerance())) {
      throw new CheckFailedException(
          "the model's logits differ by %g from those expected, more than %g"
              .formatted(difference, expected.tolerance()));
    }
    say("A model answered %d logits, off by at most %.1e.", expected.count(), difference);
  }

  private DemoTraining.Run train(boolean records) throws IOException, TranslateException {
    Path place = Files.createDirectory(folder.resolve(records ? "tfrecord" : "shards"));
    DemoTraining training = new DemoTraining(records, place.resolve("images"));
    training.writeImages();
    DemoTraining.Trial trial = training.killAndResume(place);
    DemoTraining.Run whole = trial.uninterrupted();
    int steps = whole.losses().size();
    say(
        "Made %d images as %s. A training on %s was killed by SIGKILL after step %d; its latest"
            + " checkpoint was of step %d, number %d of its epoch.",
        WriteShards.SAMPLES,
        records ? "TFRecord files" : "raw shards",
        name(whole.device()),
        trial.killed(),
        trial.restored(),
        trial.restored() % DemoTraining.STEPS_PER_EPOCH);
    say(
        "Resumed from there, with %d files of an unfinished save removed: %d more losses and all"
            + " %,d parameters are equal to those of a training that was not killed, %s.",
        trial.leftovers(),
        steps - trial.restored(),
        whole.parameters().size(),
        whole.device().isGpu() ? "to within " + DemoTraining.GPU_TOLERANCE : "bit for bit");
    if (whole.accuracy() < MIN_ACCURACY) {
      throw new CheckFailedException(
          "the network tells only %.0f%% of the images right".formatted(100 * whole.accuracy()));
    }
    say("It tells %.0f%% of the images right after %d steps.", 100 * whole.accuracy(), steps);
    return whole;
  }

  private static String name(Device device) {
    return device.isGpu() ? "cuda:" + device.getDeviceId() : "host";
  }

  private void say(String format, Object... values) {
    out.printf(Locale.ROOT, format + "%n", values);
    out.flush();
  }
}
