// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.datasets.FieldRoles;
import dev.gantry.formats.internal.batches.FieldNormalization;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The errors of the datasets' builders for wrong options. They name the option, its value, and
/// the allowed values.
@ExtendWith(NoLeaks.class)
class DatasetMisuseTest {
  @TempDir(factory = InMemory.class)
  Path folder;

  private static void isRefused(ThrowingCallable call, String message) {
    assertThatThrownBy(call).isInstanceOf(MisuseException.class).hasMessage(message);
  }

  @Test
  void numbersOutOfRangeAreRefusedWhenTheOptionIsSet() {
    ShardDataset.Builder builder = ShardDataset.builder();
    isRefused(() -> builder.setSampling(0), "setSampling must be 1 to 16777216 (was 0)");
    isRefused(() -> builder.optPrefetch(0), "optPrefetch must be 2 to 64 (was 0)");
    isRefused(() -> builder.optPrefetch(65), "optPrefetch must be 2 to 64 (was 65)");
    isRefused(() -> builder.optRepeat(0), "optRepeat must be at least 1 (was 0)");
    isRefused(() -> builder.optRank(2, 2), "optRank(2, 2): rank must be 0 to 1 (was 2)");
    isRefused(() -> builder.optRank(0, 0), "optRank(0, 0): world must be 1 to 2147483647 (was 0)");
    isRefused(
        () -> builder.optInterleave(0, 1), "optInterleave: files must be 1 to 2147483647 (was 0)");
    isRefused(
        () -> builder.optShuffleBlocks(1, 0),
        "optShuffleBlocks: samples must be 1 to 2147483647 (was 0)");
    isRefused(
        () -> builder.optSplit(1, 2, 8, 2), "optSplit of [8, 2]: part must be 0 to 1 (was 2)");
    isRefused(() -> builder.optThreads(-1), "optThreads must be 0 to 64 (was -1)");
    isRefused(
        () -> builder.optRequestBytes(5),
        "optRequestBytes must be a positive multiple of 4096, at most 1073741824 (was 5)");
    isRefused(
        () -> builder.optRequestBytes(5000),
        "optRequestBytes must be a positive multiple of 4096, at most 1073741824 (was 5000)");
  }

  @Test
  @SuppressWarnings("NullAway")
  void nullIsRefusedWhenTheOptionIsSet() {
    ShardDataset.Builder builder = ShardDataset.builder();
    isRefused(() -> builder.setPath((Path) null), "setPath must be given (was null)");
    isRefused(() -> builder.optDevice(null), "optDevice must be given (was null)");
    isRefused(() -> builder.optData("x", null), "optData: a field's name must be given (was null)");
    isRefused(() -> builder.setPath("x", null), "setPath: a name must be given (was null)");
    isRefused(() -> builder.optFilter("x", null), "optFilter: keep must be given (was null)");
    isRefused(() -> builder.optTransform(null), "optTransform must be given (was null)");
    isRefused(
        () -> TfRecordDataset.builder().setPath((List<Path>) null),
        "setPath must be given (was null)");
  }

  @Test
  @SuppressWarnings("NullAway")
  void nullIsRefusedByADatasetAndFromItsTransforms() {
    List<Path> files = ImageRecords.write(folder, 10, 1, Compression.NONE);
    TfRecordDataset.Builder builder =
        TfRecordDataset.builder()
            .setPath(files)
            .addFeature(FeatureSpec.floats("x", 2))
            .optLabels()
            .setSampling(5);
    try (TfRecordDataset dataset = builder.build()) {
      isRefused(() -> dataset.restore(null), "state must be given (was null)");
      isRefused(() -> dataset.getData(null), "manager must be given (was null)");
      NDManager closed = NDManager.newBaseManager();
      closed.close();
      isRefused(
          () -> dataset.getData(closed).iterator(), "the manager is closed: it takes no arrays");
    }
    try (TfRecordDataset dataset = builder.optTransform(_ -> null).build();
        NDManager manager = NDManager.newBaseManager()) {
      isRefused(
          () -> dataset.getData(manager).iterator().next(),
          "the result of optTransform must be given (was null)");
    }
  }

  @Test
  void devicesThatCannotShareABatchAreRefused() {
    Device[] two = {Device.gpu(0), Device.gpu(1)};
    ShardDataset.Builder builder = ShardDataset.builder();
    isRefused(
        () -> ShardDataset.builder().optDevice(Device.cpu()).optDevices(Device.gpu(0)),
        "optDevice ([cpu()]) and optDevices ([gpu(0)]) both choose the devices; call one of them");
    isRefused(
        () -> ShardDataset.builder().optShuffle(7).optShuffle(8).optShuffleBlocks(1, 2),
        "optShuffle (Samples[seed=8]) and optShuffleBlocks (Blocks[seed=1, samples=2]) both choose"
            + " the order of the samples; call one of them");
    isRefused(builder::optDevices, "optDevices must be one or more different devices (was [])");
    isRefused(
        () -> builder.optDevices(Device.cpu(), Device.cpu()),
        "optDevices must be one or more different devices (was [cpu(), cpu()])");
    Path shards = ImageShards.write(folder.resolve("shards"), 5, 5);
    isRefused(
        () -> builder.setPath(shards).setSampling(5).optDevices(two).build(),
        "setSampling must be a multiple of the 2 devices of optDevices (was 5)");
    List<Path> records = ImageRecords.write(folder.resolve("records"), 4, 1, Compression.NONE);
    TfRecordDataset.Builder streamed =
        TfRecordDataset.builder()
            .setPath(records)
            .addFeature(FeatureSpec.bytes("image", 15))
            .optLabels()
            .setSampling(4)
            .optIndex(IndexUse.NONE)
            .optDevices(two);
    isRefused(
        streamed::build,
        "optDevices with 2 devices needs samples that are reached by number: raw shards, or"
            + " TFRecord with an index");
  }

  @Test
  void whatIsMissingIsNamed() {
    Path none = folder.resolve("none");
    isRefused(
        () -> ShardDataset.builder().setSampling(1).build(),
        "setPath was not called; it says where the shards are");
    isRefused(
        () -> ShardDataset.builder().setPath(none).setSampling(1).build(),
        "setPath is " + none + "; there is no such file or folder");
    isRefused(
        () -> TfRecordDataset.builder().setPath(List.of(none)).setSampling(1).build(),
        "setPath is " + none + "; there is no such file or folder");
    Path shards = ImageShards.write(folder.resolve("shards"), 5, 5);
    isRefused(
        () -> ShardDataset.builder().setPath(shards).build(),
        "setSampling was not called; it says how many samples a batch has");
  }

  @Test
  void aFolderOfTheOtherKindIsNamed() {
    Path shards = ImageShards.write(folder.resolve("shards"), 5, 5);
    TfRecordDataset.Builder builder =
        TfRecordDataset.builder().setPath(shards.toString()).setSampling(1);
    isRefused(
        builder::build,
        "setPath: the folder "
            + shards
            + " holds raw shards (shards.json), which a ShardDataset reads, and no TFRecord files");
    isRefused(
        () -> TfRecordDataset.buildIndexes("~/t"),
        "buildIndexes is ~/t; there is no such file or folder; only shells take ~ for the home"
            + " folder");
    isRefused(
        () -> TfRecordDataset.buildIndexes(shards.toString()),
        "buildIndexes: the folder "
            + shards
            + " holds raw shards (shards.json), which a ShardDataset reads, and no TFRecord files");
    Path records = folder.resolve("records");
    List<Path> _ = ImageRecords.write(records, 4, 1, Compression.NONE);
    String instead = "images-00000-of-00001 is TFRecord, which TfRecordDataset reads";
    assertThatThrownBy(() -> ShardDataset.builder().setPath(records).setSampling(1).build())
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining(records.toString())
        .hasMessageContaining("no-shards: the folder has no shards.json; its file ")
        .hasMessageEndingWith(instead);
    assertThatThrownBy(() -> Weights.open(records))
        .hasMessageContaining("no-weights: the folder has no weights, such as ")
        .hasMessageEndingWith(instead);
    assertThatThrownBy(() -> WebDataset.builder().setPath(records).setSampling(1).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("there is no archive named *.tar in " + records)
        .hasMessageEndingWith(instead);
  }

  @Test
  void aLabelOfAnotherNameIsAskedForAndNotTakenForData() {
    List<Path> files = ImageRecords.write(folder, 10, 1, Compression.NONE);
    TfRecordDataset.Builder builder =
        TfRecordDataset.builder()
            .setPath(files)
            .addFeature(FeatureSpec.bytes("image", 15))
            .addFeature(FeatureSpec.floats("x", 2))
            .setSampling(5);
    isRefused(
        builder::build,
        "optLabels was not called, and none of the fields [image, x] is called label, labels or"
            + " cls; name those that are labels by optLabels, without any where there are none");
    // The length of a field does not show whether the field is a label.
    FieldRoles alone =
        FieldRoles.of(
            List.of("tokens", "tokens_length"), Optional.empty(), Optional.empty(), Map.of());
    assertThat(alone.data()).containsExactly("tokens", "tokens_length");
    builder.optLabels().build().close();
    builder.optLabels("x").build().close();
  }

  @Test
  void fieldsThatAreNotThereAreNamedWithTheOption() {
    List<String> fields = List.of("image", "label");
    isRefused(
        () -> FieldRoles.of(fields, Optional.of(List.of("imag")), Optional.empty(), Map.of()),
        "optData names the field 'imag'; it must be one of [image, label]");
    isRefused(
        () -> FieldRoles.of(fields, Optional.empty(), Optional.of(List.of("class")), Map.of()),
        "optLabels names the field 'class'; it must be one of [image, label]");
    isRefused(
        () ->
            FieldRoles.of(
                fields,
                Optional.empty(),
                Optional.empty(),
                Map.of("x", new FieldNormalization(List.of(1f), List.of(0f), DType.F32, false))),
        "optNormalize names the field 'x'; it must be one that is read: [image, label]");
  }

  @Test
  void aFieldHasOneRole() {
    List<String> fields = List.of("image", "label");
    FieldRoles roles =
        FieldRoles.of(fields, Optional.of(List.of("label")), Optional.empty(), Map.of());
    assertThat(roles.data()).containsExactly("label");
    assertThat(roles.labels()).isEmpty();
    String twice = "optData and optLabels name the field 'image' twice; once is enough";
    isRefused(
        () ->
            FieldRoles.of(
                fields, Optional.of(List.of("image", "image")), Optional.empty(), Map.of()),
        twice);
    isRefused(
        () ->
            FieldRoles.of(
                fields, Optional.of(List.of("image")), Optional.of(List.of("image")), Map.of()),
        twice);
  }

  @Test
  void whatCannotBeNormalisedIsNamed() {
    Path shards = ImageShards.write(folder.resolve("shards"), 5, 5);
    float[] three = {1, 2, 3};
    isRefused(
        () -> ShardDataset.builder().optNormalize("image", three, new float[1]),
        "optNormalize: there must be as many shifts as scales (were 1 and 3)");
    isRefused(
        () -> ShardDataset.builder().optNormalize("image", three, three, DataType.FLOAT64),
        "optNormalize: type must be one of [float32, float16, bfloat16] (was float64)");
    isRefused(
        () -> ShardDataset.builder().optNormalize("image", three, new float[] {0, 1 / 0f, 0}),
        "optNormalize: shift[1] must be finite (was Infinity)");
    isRefused(
        () -> ShardDataset.builder().optNormalize("image", Float.NaN, 0),
        "optNormalize: scale[0] must be finite (was NaN)");
    ShardDataset.Builder builder = ShardDataset.builder().setPath(shards).setSampling(2);
    isRefused(
        () -> builder.optChannelsFirst("image").build(),
        "optChannelsFirst names the field 'image'; it must be one that optNormalize names: []");
    isRefused(
        () -> builder.optNormalize("image", three, three).build(),
        "optNormalize: the field 'image' has samples of shape [3, 5], with the channels last; there"
            + " must be one scale, or 5 (was 3)");
    isRefused(
        () ->
            ShardDataset.builder()
                .setPath(shards)
                .setSampling(2)
                .optNormalize("label", 1, 0)
                .optChannelsFirst("label")
                .build(),
        "optChannelsFirst: the field 'label' has samples of shape []; they must have two axes or"
            + " more, the channels last");
  }

  @Test
  void whatIsPaddedToTheLongestTakesOneScale() {
    List<Path> files = ImageRecords.write(folder, 10, 1, Compression.NONE);
    TfRecordDataset.Builder builder =
        TfRecordDataset.builder()
            .setPath(files)
            .addFeature(
                new FeatureSpec.VariableLength(
                    "x", FeatureSpec.Kind.FLOAT, DType.F32, 2, 0, FeatureSpec.PadTo.LONGEST))
            .optLabels()
            .setSampling(5)
            .optNormalize("x", new float[] {1, 2}, new float[2]);
    isRefused(
        builder::build,
        "optNormalize: the field 'x' is padded to the longest of each batch; give one scale (were"
            + " 2)");
    builder.optNormalize("x", 2, 1).build().close();
  }

  @Test
  void blocksAsLargeAsBatchesAreWarnedOf() {
    Path shards = ImageShards.write(folder.resolve("shards"), 50, 50);
    ShardDataset.Builder builder = ShardDataset.builder().setPath(shards).setSampling(8);
    String warning = "optShuffleBlocks: each batch of 8 samples is a run of neighbours";
    assertThat(StandardError.during(() -> builder.optShuffleBlocks(1, 8).build().close()))
        .containsOnlyOnce(warning);
    assertThat(StandardError.during(() -> builder.optShuffleBlocks(1, 2).build().close()))
        .doesNotContain("optShuffleBlocks");
    ShardDataset.Builder whole = ShardDataset.builder().setPath(shards).setSampling(1);
    assertThat(StandardError.during(() -> whole.optShuffle(1).build().close()))
        .doesNotContain("optShuffleBlocks");
  }
}
