// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.EasyTrain;
import ai.djl.training.dataset.Batch;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Compares normalised fields with the results of DJL's operations, bit for bit, in the first
/// epoch, which is read, and in later epochs, which the GPU or the CPU gathers.
@ExtendWith(NoLeaks.class)
class NormalizedDatasetTest {
  private static final int SAMPLES = 100;
  private static final int EPOCHS = 4;
  private static final float[] SCALE = {1 / (255 * 0.229f), 1 / (255 * 0.224f), 1 / 255f, 2, -0.1f};
  private static final float[] SHIFT = {-0.485f / 0.229f, -0.456f / 0.224f, 0, -1, 0.5f};

  @TempDir(factory = InMemory.class)
  Path folder;

  private ShardDataset.Builder shards() {
    Path path = folder.resolve("shards");
    if (Files.notExists(path)) {
      path = ImageShards.write(path, SAMPLES, 37);
    }
    return ShardDataset.builder()
        .setPath(path)
        .setSampling(8)
        .optShuffle(5)
        .optData("image")
        .optPoison(true);
  }

  /// Returns the data of all epochs as floats.
  private static List<float[]> data(GantryDataset dataset) {
    List<float[]> all = new ArrayList<>();
    try (dataset;
        NDManager manager = NDManager.newBaseManager()) {
      for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (Batch batch : dataset.getData(manager)) {
          try (batch) {
            NDArray data = batch.getData().singletonOrThrow();
            all.add(data.toType(DataType.FLOAT32, true).toFloatArray());
          }
        }
      }
    }
    return all;
  }

  /// Normalises samples of three rows and five columns with DJL's operations. The columns are the
  /// channels if channels come last.
  private static NDList byOperations(NDList images, boolean channelsLast, DataType to) {
    NDArray values = images.singletonOrThrow().toType(DataType.FLOAT32, true);
    NDManager manager = values.getManager();
    NDArray moved = channelsLast ? values.transpose(0, 2, 1) : values;
    int channels = channelsLast ? 5 : 3;
    Shape each = new Shape(1, channels, 1);
    NDArray scale = manager.create(Arrays.copyOf(SCALE, channels), each);
    NDArray shift = manager.create(Arrays.copyOf(SHIFT, channels), each);
    return new NDList(moved.mul(scale).add(shift).toType(to, true));
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT32", "FLOAT16"})
  void channelsThatComeLastBecomeTheFirst(DataType to) {
    List<float[]> expected =
        data(shards().optTransform(images -> byOperations(images, true, to)).build());
    assertThat(
            data(
                shards().optNormalize("image", SCALE, SHIFT, to).optChannelsFirst("image").build()))
        .usingRecursiveComparison()
        .isEqualTo(expected);
  }

  @Test
  void channelsThatComeFirstHaveTheirOwnScales() {
    float[] scale = Arrays.copyOf(SCALE, 3);
    float[] shift = Arrays.copyOf(SHIFT, 3);
    List<float[]> expected =
        data(
            shards().optTransform(images -> byOperations(images, false, DataType.FLOAT32)).build());
    assertThat(data(shards().optNormalize("image", scale, shift).build()))
        .usingRecursiveComparison()
        .isEqualTo(expected);
  }

  @Test
  void bfloat16IsRoundedFromFloat32() {
    List<float[]> floats =
        data(shards().optNormalize("image", SCALE, SHIFT).optChannelsFirst("image").build());
    List<float[]> rounded =
        data(
            shards()
                .optNormalize("image", SCALE, SHIFT, DataType.BFLOAT16)
                .optChannelsFirst("image")
                .build());
    for (int i = 0; i < floats.size(); i++) {
      float[] expected = floats.get(i);
      for (int j = 0; j < expected.length; j++) {
        int bits = Float.floatToRawIntBits(expected[j]);
        expected[j] = Float.intBitsToFloat((bits + 0x7FFF + ((bits >>> 16) & 1)) & 0xFFFF0000);
      }
    }
    assertThat(rounded).usingRecursiveComparison().isEqualTo(floats);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void recordsAreNormalisedByAnIndexAndAsStreams(boolean indexed) {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 3, Compression.NONE);
    TfRecordDataset.Builder builder =
        TfRecordDataset.builder()
            .setPath(files)
            .addFeature(FeatureSpec.bytes("image", 3, 5))
            .addFeature(FeatureSpec.int64s("label"))
            .optIndex(indexed ? IndexUse.BUILD : IndexUse.NONE)
            .setSampling(8)
            .optPoison(true);
    List<float[]> expected =
        data(builder.optTransform(images -> byOperations(images, true, DataType.FLOAT32)).build());
    assertThat(
            data(
                builder
                    .optTransform(images -> images)
                    .optNormalize("image", SCALE, SHIFT)
                    .optChannelsFirst("image")
                    .build()))
        .usingRecursiveComparison()
        .isEqualTo(expected);
  }

  /// Integers are first rounded to 32 bits, also the integers of an index, which lie in host
  /// memory.
  @Test
  void labelsMayBeNormalisedToo() {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 3, Compression.NONE);
    try (TfRecordDataset dataset =
            TfRecordDataset.builder()
                .setPath(files)
                .addFeature(FeatureSpec.bytes("image", 3, 5))
                .addFeature(FeatureSpec.int64s("label"))
                .optIndex(IndexUse.BUILD)
                .setSampling(SAMPLES)
                .optNormalize("label", 0.5f, 1)
                .build();
        NDManager manager = NDManager.newBaseManager()) {
      try (Batch batch = dataset.getData(manager).iterator().next()) {
        float[] labels = batch.getLabels().singletonOrThrow().toFloatArray();
        for (int i = 0; i < SAMPLES; i++) {
          assertThat(labels[i]).isEqualTo(0.5f * i + 1);
        }
      }
    }
  }

  @Test
  void aTrainingLearnsTheSameAsByDjlsOperations() throws Exception {
    Path path = ImageShards.write(folder.resolve("shards"), SAMPLES, 37);
    PlainState ours = train(EpochEndTest.shards(path).optShuffle(3).build());
    PlainState operations =
        train(
            EpochEndTest.plainShards(path)
                .optShuffle(3)
                .optTransform(images ->
                    EpochEndTest.inputs(
                        new NDList(
                            images
                                .singletonOrThrow()
                                .toType(DataType.FLOAT32, true)
                                .muli(1 / 255f)
                                .addi(0))))
                .build());
    assertThat(ours).isEqualTo(operations);
  }

  private static PlainState train(ShardDataset dataset) throws Exception {
    try (dataset;
        Training training = Fit.training()) {
      EasyTrain.fit(training.trainer, EPOCHS, dataset, null);
      return PlainState.of(training.trainer);
    }
  }
}
