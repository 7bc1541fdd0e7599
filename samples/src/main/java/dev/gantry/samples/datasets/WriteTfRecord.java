// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.datasets;

import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordShards;
import dev.gantry.samples.Usage;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.SplittableRandom;

/// Writes vectors and labels as TFRecord files of `tf.train.Example` messages, which TensorFlow
/// reads, too.
///
/// `FOLDER` gets the files `train-00000-of-00004` and so on:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' WriteTfRecord.java FOLDER
/// ```
public final class WriteTfRecord {
  private static final int FILES = 4;
  private static final int SAMPLES_PER_FILE = 500;
  private static final int CLASSES = 10;
  private static final int FEATURES = 64;

  private WriteTfRecord() {}

  public static void main(String[] arguments) throws IOException {
    Usage.check("WriteTfRecord.java FOLDER", arguments);
    write(Files.createDirectories(Path.of(arguments[0]))).forEach(System.out::println);
  }

  /// @return the files
  static List<Path> write(Path folder) {
    SplittableRandom random = new SplittableRandom(1);
    try (TfRecordShards writer = TfRecordShards.create(folder, "train", FILES, Compression.NONE)) {
      for (int i = 0; i < FILES * SAMPLES_PER_FILE; i++) {
        int label = random.nextInt(CLASSES);
        ExampleBuilder example =
            new ExampleBuilder().floats("vector", vector(label, random)).int64s("label", label);
        writer.write(i / SAMPLES_PER_FILE, MemorySegment.ofArray(example.toBytes()));
      }
      // All files appear now, complete; without it, none does.
      writer.commit();
    }
    return TfRecordShards.files(folder, "train", FILES);
  }

  /// A point near the centre of its class. Stands for your own features.
  private static float[] vector(int label, SplittableRandom random) {
    float[] vector = new float[FEATURES];
    for (int i = 0; i < FEATURES; i++) {
      vector[i] = (i % CLASSES == label ? 2 : 0) + (float) random.nextGaussian();
    }
    return vector;
  }
}
