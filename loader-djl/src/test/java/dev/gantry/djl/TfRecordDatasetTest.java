// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.CorruptionPolicy;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@ExtendWith(NoLeaks.class)
class TfRecordDatasetTest {
  private static final int SAMPLES = 300;

  @TempDir Path folder;

  private static TfRecordDataset.Builder dataset(List<Path> files) {
    return TfRecordDataset.builder()
        .setPath(files)
        .addFeature(FeatureSpec.bytes("image", 3, 5))
        .addFeature(FeatureSpec.floats("x", 2))
        .addFeature(FeatureSpec.int64s("label"))
        .setSampling(16)
        .optPoison(true);
  }

  /// Returns the labels in their order, and checks that all fields of a sample agree with its
  /// label.
  private static List<Long> checkedLabels(TfRecordDataset dataset, NDManager manager) {
    List<Long> all = new ArrayList<>();
    for (Batch batch : dataset.getData(manager)) {
      try (batch) {
        int size = batch.getSize();
        assertThat(batch.getData().get("image").getShape()).isEqualTo(new Shape(size, 3, 5));
        assertThat(batch.getData().get("x").getShape()).isEqualTo(new Shape(size, 2));
        byte[] images = batch.getData().get("image").toByteArray();
        float[] x = batch.getData().get("x").toFloatArray();
        long[] labels = batch.getLabels().singletonOrThrow().toLongArray();
        assertThat(labels).hasSize(size);
        for (int i = 0; i < size; i++) {
          for (int at = 0; at < ImageShards.IMAGE_BYTES; at++) {
            assertThat(images[i * ImageShards.IMAGE_BYTES + at])
                .isEqualTo(ImageShards.pixel(labels[i], at));
          }
          assertThat(x[2 * i]).isEqualTo((float) labels[i]);
          assertThat(x[2 * i + 1]).isEqualTo((float) -labels[i]);
          all.add(labels[i]);
        }
      }
    }
    return all;
  }

  private static List<Long> numbers() {
    return LongStream.range(0, SAMPLES).boxed().toList();
  }

  @ParameterizedTest
  @EnumSource
  void streamsFilesOfEachCompression(Compression compression) {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 3, compression);
    try (TfRecordDataset dataset = dataset(files).build();
        NDManager manager = NDManager.newBaseManager()) {
      assertThat(dataset.isIndexed()).isFalse();
      assertThat(dataset.batchesPerEpoch()).isEmpty();
      assertThat(checkedLabels(dataset, manager)).isEqualTo(numbers());
      assertThat(checkedLabels(dataset, manager)).isEqualTo(numbers());
    }
  }

  @Test
  void aFolderAmongPathsStandsForItsFiles() {
    List<Path> _ = ImageRecords.write(folder, SAMPLES, 3, Compression.NONE);
    // From the second time on, the folder also has the files' indexes.
    for (IndexUse use : List.of(IndexUse.NONE, IndexUse.BUILD, IndexUse.REQUIRE, IndexUse.NONE)) {
      try (TfRecordDataset dataset = dataset(List.of(folder)).optIndex(use).build();
          NDManager manager = NDManager.newBaseManager()) {
        assertThat(checkedLabels(dataset, manager)).isEqualTo(numbers());
      }
    }
  }

  @Test
  void readsByIndexesOnceTheyAreBuilt() {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 3, Compression.NONE);
    try (TfRecordDataset dataset = dataset(files).optIndex(IndexUse.BUILD).build();
        NDManager manager = NDManager.newBaseManager()) {
      assertThat(dataset.isIndexed()).isTrue();
      assertThat(dataset.batchesPerEpoch()).hasValue(19);
      assertThat(checkedLabels(dataset, manager)).isEqualTo(numbers());
    }
    try (TfRecordDataset dataset = dataset(files).optShuffle(new Shuffle.Blocks(3, 1)).build();
        NDManager manager = NDManager.newBaseManager()) {
      assertThat(dataset.isIndexed()).isTrue();
      List<Long> first = checkedLabels(dataset, manager);
      List<Long> second = checkedLabels(dataset, manager);
      assertThat(first)
          .containsExactlyInAnyOrderElementsOf(numbers())
          .isNotEqualTo(second)
          .isNotEqualTo(numbers());
    }
  }

  @Test
  void buildsAnIndexAgainThatLacksAWantedFeature() {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 2, Compression.NONE);
    try (GantrySession session = GantrySession.open()) {
      for (Path file : files) {
        TfRecordIndex.Options labels =
            TfRecordIndex.Options.defaults().withFeatures(List.of("label"));
        TfRecordIndex.Summary _ = TfRecordIndex.build(file, labels, session);
      }
    }
    assertThatThrownBy(() -> dataset(files).optIndex(IndexUse.REQUIRE).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("has no feature");
    try (TfRecordDataset dataset = dataset(files).optIndex(IndexUse.BUILD).build();
        NDManager manager = NDManager.newBaseManager()) {
      assertThat(dataset.isIndexed()).isTrue();
      assertThat(checkedLabels(dataset, manager)).isEqualTo(numbers());
    }
  }

  @Test
  void indexedAndStreamedFilesInterleaveAlike() {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 4, Compression.NONE);
    try (TfRecordDataset streamed =
            dataset(files).optIndex(IndexUse.NONE).optInterleave(3, 5).build();
        TfRecordDataset indexed =
            dataset(files).optIndex(IndexUse.BUILD).optInterleave(3, 5).build();
        NDManager manager = NDManager.newBaseManager()) {
      List<Long> labels = checkedLabels(streamed, manager);
      assertThat(labels).containsExactlyInAnyOrderElementsOf(numbers());
      assertThat(checkedLabels(indexed, manager)).isEqualTo(labels);
    }
  }

  /// Rank 0 has indexes and rank 1 has none; without a shuffle both read in the same order.
  @Test
  void ranksReadByIndexesOrAsStreamsButWithAShuffleOnlyAlike() {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 3, Compression.NONE);
    List<Long> seen = new ArrayList<>();
    for (IndexUse use : List.of(IndexUse.NONE, IndexUse.BUILD)) {
      try (TfRecordDataset rank =
              dataset(files).optIndex(use).optRank(use == IndexUse.NONE ? 1 : 0, 2).build();
          NDManager manager = NDManager.newBaseManager()) {
        seen.addAll(checkedLabels(rank, manager));
      }
    }
    assertThat(seen).containsExactlyInAnyOrderElementsOf(numbers());

    List<Path> without = ImageRecords.write(folder.resolve("other"), SAMPLES, 3, Compression.NONE);
    assertThatThrownBy(() -> dataset(without).optRank(1, 2).optShuffle(3).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll(
            "optIndex must be given where several ranks shuffle", "gantry-index does not exist");
    dataset(without).optRank(1, 2).build().close();
    for (IndexUse use : List.of(IndexUse.WHERE_THERE, IndexUse.NONE, IndexUse.BUILD)) {
      try (TfRecordDataset rank =
          dataset(without).optRank(1, 2).optShuffle(3).optIndex(use).build()) {
        assertThat(rank.isIndexed()).isEqualTo(use == IndexUse.BUILD);
      }
    }
    dataset(without).optRank(1, 2).optShuffle(3).build().close();
  }

  @Test
  void filesThatWereCopiedAreReadByTheIndexesThatCameAlong() throws IOException {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 2, Compression.NONE);
    TfRecordDataset.buildIndexes(files);
    for (Path file : files) {
      Files.setLastModifiedTime(file, FileTime.fromMillis(1));
    }
    try (TfRecordDataset rank = dataset(files).optRank(0, 2).optShuffle(3).build()) {
      assertThat(rank.isIndexed()).isTrue();
    }
  }

  @Test
  void streamsGoOnWhereTheyStood() {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 3, Compression.GZIP);
    try (NDManager manager = NDManager.newBaseManager()) {
      String state;
      try (TfRecordDataset killed = dataset(files).optPrefetch(4).build()) {
        var batches = killed.getData(manager).iterator();
        for (int i = 0; i < 7; i++) {
          batches.next().close();
        }
        state = killed.state();
      }
      try (TfRecordDataset resumed = dataset(files).build()) {
        resumed.restore(state);
        assertThat(checkedLabels(resumed, manager)).isEqualTo(numbers().subList(7 * 16, SAMPLES));
        assertThat(checkedLabels(resumed, manager)).isEqualTo(numbers());
      }
    }
  }

  @Test
  void guessesTheFeaturesWhereNobodyNamesThem() {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 1, Compression.NONE);
    try (TfRecordDataset dataset =
            TfRecordDataset.builder().setPath(files).setSampling(10).build();
        NDManager manager = NDManager.newBaseManager()) {
      try (Batch batch = dataset.getData(manager).iterator().next()) {
        assertThat(batch.getData().get("image").getShape()).isEqualTo(new Shape(10, 15));
        assertThat(batch.getLabels().get("label").getShape()).isEqualTo(new Shape(10));
      }
    }
  }

  @Test
  void paddedFieldsAreFollowedByTheirLengthsAsData() {
    Path file = folder.resolve("tokens");
    try (GantrySession session = GantrySession.open();
        TfRecordWriter writer = TfRecordWriter.create(session, file, Compression.NONE)) {
      for (int i = 0; i < 4; i++) {
        long[] tokens = new long[i + 1];
        Arrays.fill(tokens, i + 1L);
        writer.write(new ExampleBuilder().int64s("tokens", tokens).int64s("label", i).toBytes());
      }
      writer.commit();
    }
    TfRecordDataset.Builder builder =
        TfRecordDataset.builder()
            .setPath(List.of(file))
            .addFeature(FeatureSpec.int64s("label"))
            .addFeature(
                new FeatureSpec.VariableLength(
                    "tokens", FeatureSpec.Kind.INT64, DType.I64, 9, 0, FeatureSpec.PadTo.LONGEST))
            .setSampling(4);
    try (NDManager manager = NDManager.newBaseManager()) {
      try (TfRecordDataset dataset = builder.build();
          Batch batch = dataset.getData(manager).iterator().next()) {
        assertThat(batch.getData()).hasSize(2);
        assertThat(batch.getData().get(0).getShape()).isEqualTo(new Shape(4, 4));
        assertThat(batch.getData().get(1).getName()).isEqualTo("tokens_length");
        assertThat(batch.getData().get(1).toLongArray()).containsExactly(1, 2, 3, 4);
        assertThat(batch.getLabels().singletonOrThrow().toLongArray()).containsExactly(0, 1, 2, 3);
      }
      try (TfRecordDataset dataset = builder.optData("tokens_length").build();
          Batch batch = dataset.getData(manager).iterator().next()) {
        assertThat(batch.getData().singletonOrThrow().toLongArray()).containsExactly(1, 2, 3, 4);
      }
      try (TfRecordDataset dataset = builder.optData("tokens").optLabels("tokens_length").build();
          Batch batch = dataset.getData(manager).iterator().next()) {
        assertThat(batch.getLabels().singletonOrThrow().toLongArray()).containsExactly(1, 2, 3, 4);
      }
    }
  }

  @Test
  void brokenRecordsFailTheirBatchOrAreLeftOut() throws IOException {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 1, Compression.NONE);
    try (RandomAccessFile file = new RandomAccessFile(files.getFirst().toFile(), "rw")) {
      // The offset lies in the data of the second record.
      file.seek(file.length() / SAMPLES + 40);
      int before = file.read();
      file.seek(file.getFilePointer() - 1);
      file.write(before ^ 1);
    }
    try (NDManager manager = NDManager.newBaseManager()) {
      try (TfRecordDataset dataset = dataset(files).build()) {
        assertThatThrownBy(() -> checkedLabels(dataset, manager))
            .isInstanceOf(MalformedFileException.class)
            .hasMessageContaining("record 1");
      }
      TfRecordOptions skipping =
          TfRecordOptions.defaults().withCorruption(new CorruptionPolicy.Skip(1));
      try (TfRecordDataset dataset = dataset(files).optRecords(skipping).build()) {
        assertThat(checkedLabels(dataset, manager)).hasSize(SAMPLES - 1).doesNotContain(1L);
        assertThat(dataset.records().orElseThrow().skipped()).containsEntry("data-crc", 1L);
      }
      TfRecordDataset.Builder unnamed =
          TfRecordDataset.builder().setPath(files).setSampling(16).optRecords(skipping);
      try (TfRecordDataset dataset = unnamed.build();
          Batch batch = dataset.getData(manager).iterator().next()) {
        assertThat(batch.getLabels().singletonOrThrow().toLongArray()).startsWith(0, 2, 3);
      }
      assertThatThrownBy(() -> dataset(files).optIndex(IndexUse.BUILD).build())
          .isInstanceOf(MalformedFileException.class);
    }
  }

  /// The folder looks as if a writer on Spark had ended within its commit, of a new set and over
  /// an old set.
  @Test
  void aFolderOfASetIsReadAsAWholeOrNotAtAll() throws IOException {
    Path set = Files.createDirectory(folder.resolve("set"));
    List<String> names = new ArrayList<>();
    for (Path file : ImageRecords.write(folder, SAMPLES, 3, Compression.NONE)) {
      String name = "part-0000" + names.size() + "-of-00003-1a2b3c4d.tfrecord";
      names.add(Files.size(file) + " " + name);
      Files.move(file, set.resolve(name));
      if (names.size() == 2) {
        assertThatThrownBy(() -> dataset(List.of()).setPath(set.toString()).build())
            .isInstanceOf(MalformedFileException.class)
            .hasMessageContainingAll(set.toString(), "no-list", "part-00000-of-00003-1a2b3c4d");
        assertThatThrownBy(() -> TfRecordDataset.buildIndexes(set.toString()))
            .isInstanceOf(MalformedFileException.class);
      }
    }
    Files.writeString(
        set.resolve("_gantry-files"), "gantry-files 1\n" + String.join("\n", names) + "\n");
    Path next = ImageRecords.write(folder, 20, 1, Compression.NONE).getFirst();
    Files.move(next, set.resolve("part-00000-of-00001-99999999.tfrecord"));
    try (TfRecordDataset dataset = dataset(List.of()).setPath(set.toString()).build();
        NDManager manager = NDManager.newBaseManager()) {
      assertThat(checkedLabels(dataset, manager)).isEqualTo(numbers());
    }
  }

  /// The folder looks as if the process of [dev.gantry.formats.tfrecord.TfRecordShards] had ended
  /// within its commit.
  @Test
  void aFolderOfANamedSetIsReadAsAWholeOrNotAtAll() throws IOException {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 3, Compression.NONE);
    Path last = Files.move(files.getLast(), folder.resolve("other"));
    for (IndexUse use : IndexUse.values()) {
      assertThatThrownBy(() -> dataset(List.of()).setPath(folder.toString()).optIndex(use).build())
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContainingAll(folder.toString(), "_gantry-files", "write the set again");
    }
    assertThatThrownBy(() -> TfRecordDataset.buildIndexes(folder.toString()))
        .isInstanceOf(MalformedFileException.class);
    Files.move(last, files.getLast());
    try (TfRecordDataset dataset = dataset(List.of()).setPath(folder.toString()).build();
        NDManager manager = NDManager.newBaseManager()) {
      assertThat(checkedLabels(dataset, manager)).isEqualTo(numbers());
    }
  }

  /// A path names one file or a folder of files, and is no pattern.
  @Test
  void aPathIsAFileOrAFolder() throws IOException {
    List<Path> _ = ImageRecords.write(folder, SAMPLES, 3, Compression.NONE);
    Path below = Files.createDirectory(folder.resolve("below"));
    Path alone = ImageRecords.write(below, SAMPLES, 1, Compression.NONE).getFirst();
    for (IndexUse use : List.of(IndexUse.NONE, IndexUse.BUILD)) {
      for (Path path : List.of(folder, alone)) {
        try (TfRecordDataset dataset = dataset(List.of()).setPath(path).optIndex(use).build();
            NDManager manager = NDManager.newBaseManager()) {
          assertThat(checkedLabels(dataset, manager)).isEqualTo(numbers());
        }
      }
    }
    Path pattern = folder.resolve("*");
    assertThatThrownBy(() -> dataset(List.of()).setPath(pattern).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll("setPath", pattern.toString(), "no such file or folder");
  }

  /// A dataset that names the files of an incomplete set is refused like one that names their
  /// folder.
  @Test
  void filesOfASetThatIsNotWholeAreRefusedByTheirNamesToo() throws IOException {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 3, Compression.NONE);
    Path last = Files.move(files.getLast(), folder.resolve("other"));
    List<Path> found = files.subList(0, 2);
    for (IndexUse use : IndexUse.values()) {
      assertNotWhole(() -> dataset(List.of()).setPath(found).optIndex(use).build().close());
      assertNotWhole(() ->
          dataset(List.of()).setPath(found.getFirst().toString()).optIndex(use).build().close());
    }
    assertNotWhole(() -> TfRecordDataset.buildIndexes(found));
    assertNotWhole(() -> TfRecordDataset.buildIndexes(found.getFirst().toString()));
    Files.move(last, files.getLast());
    try (TfRecordDataset dataset = dataset(found).build()) {
      assertThat(dataset.records()).isPresent();
    }
  }

  private void assertNotWhole(ThrowingCallable reader) {
    assertThatThrownBy(reader)
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll(
            folder.toString(),
            "_gantry-files",
            "-00002-of-00003 is missing",
            "write the set again");
  }

  @Test
  void refusesWhatCannotBeRead() {
    List<Path> files = ImageRecords.write(folder, SAMPLES, 1, Compression.ZLIB);
    assertThatThrownBy(() -> dataset(files).optIndex(IndexUse.REQUIRE).build())
        .isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> dataset(files).optShuffleBlocks(3, 4).build())
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("index");
  }
}
