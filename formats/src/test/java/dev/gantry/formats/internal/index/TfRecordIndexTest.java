// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.TfRecordIndex.Feature.Obstacle;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Usable;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class TfRecordIndexTest {
  private static final int RECORDS = 20;

  @TempDir Path folder;
  private final GantrySession session = GantrySession.open();
  private Path file;

  @BeforeEach
  void write() {
    file = TestExamples.write(session, folder.resolve("data.tfrecord"), 1, RECORDS);
  }

  @AfterEach
  void close() {
    session.close();
  }

  private TfRecordIndex.Summary build() {
    return TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
  }

  private TfRecordIndex open() {
    return ((Usable) TfRecordIndex.open(file, session)).index();
  }

  @Test
  void theSummaryHasAllFeatures() {
    TfRecordIndex.Summary summary = build();
    assertThat(summary.records()).isEqualTo(RECORDS);
    assertThat(summary.features())
        .containsExactlyInAnyOrder(
            new TfRecordIndex.Feature(
                "image",
                Optional.of(FeatureSpec.Kind.BYTES),
                0,
                OptionalLong.of(TestExamples.IMAGE_BYTES),
                Optional.empty()),
            new TfRecordIndex.Feature(
                "floats",
                Optional.of(FeatureSpec.Kind.FLOAT),
                0,
                OptionalLong.of(TestExamples.FLOATS),
                Optional.empty()),
            new TfRecordIndex.Feature(
                "label",
                Optional.of(FeatureSpec.Kind.INT64),
                0,
                OptionalLong.of(2),
                Optional.empty()));
    try (TfRecordIndex index = open()) {
      assertThat(index.summary()).isEqualTo(summary);
      assertThat(index.file()).isEqualTo(Location.of(file));
      assertThat(IndexReads.values(index, "label", 7)).isEqualTo(TestExamples.label(1, 7));
      assertThat(IndexReads.recordOffset(index, 0)).isEqualTo(12);
      assertThat(IndexReads.recordLength(index, RECORDS - 1L))
          .isEqualTo(TestExamples.record(1, RECORDS - 1L).length);
      assertThatThrownBy(() -> IndexReads.values(index, "image", 0))
          .isInstanceOf(MisuseException.class);
      assertThatThrownBy(() -> IndexReads.valueOffset(index, "label", 0))
          .isInstanceOf(MisuseException.class);
    }
  }

  @Test
  void onlyWhatWasChosenIsIndexedAlsoWhereNoRecordHasIt() {
    TfRecordIndex.Summary summary =
        TfRecordIndex.build(
            file,
            TfRecordIndex.Options.defaults().withFeatures(List.of("absent", "label")),
            session);
    assertThat(summary.features())
        .containsExactly(
            new TfRecordIndex.Feature(
                "absent",
                Optional.empty(),
                RECORDS,
                OptionalLong.empty(),
                Optional.of(new Obstacle(0, "it is missing"))),
            new TfRecordIndex.Feature(
                "label",
                Optional.of(FeatureSpec.Kind.INT64),
                0,
                OptionalLong.of(2),
                Optional.empty()));
    try (TfRecordIndex index = open()) {
      assertThat(index.summary()).isEqualTo(summary);
      assertThat(IndexReads.isPlaced(index, "image")).isFalse();
    }
  }

  @Test
  void whatDiffersHasTheFirstReasonAndIsCountedOn() {
    List<byte[]> records = new ArrayList<>();
    records.add(new ExampleBuilder().bytes("a", new byte[4]).int64s("n", 1).toBytes());
    records.add(new ExampleBuilder().bytes("a", new byte[5]).int64s("n", 1).toBytes());
    records.add(new ExampleBuilder().bytes("a", new byte[4]).int64s("n", 1, 2).toBytes());
    records.add(new ExampleBuilder().floats("late", 1).toBytes());
    records.add(new ExampleBuilder().floats("a", 1).int64s("late", 1).toBytes());
    file = TestExamples.write(session, folder.resolve("other"), records);
    TfRecordIndex.Summary summary = build();
    assertThat(summary.feature("a"))
        .contains(
            new TfRecordIndex.Feature(
                "a",
                Optional.of(FeatureSpec.Kind.BYTES),
                1,
                OptionalLong.empty(),
                Optional.of(new Obstacle(1, "it has 5 bytes, not 4"))));
    assertThat(summary.feature("n"))
        .contains(
            new TfRecordIndex.Feature(
                "n",
                Optional.of(FeatureSpec.Kind.INT64),
                2,
                OptionalLong.empty(),
                Optional.of(new Obstacle(2, "it has 2 integers, not 1"))));
    assertThat(summary.feature("late"))
        .contains(
            new TfRecordIndex.Feature(
                "late",
                Optional.of(FeatureSpec.Kind.FLOAT),
                3,
                OptionalLong.empty(),
                Optional.of(new Obstacle(0, "it is missing"))));
    try (TfRecordIndex index = open()) {
      assertThat(index.summary()).isEqualTo(summary);
      // The feature has another kind in the last record.
      assertThat(IndexReads.isPlaced(index, "a")).isFalse();
    }
  }

  @Test
  void anotherKindIsAReason() {
    List<byte[]> records =
        List.of(
            new ExampleBuilder().floats("a", 1).toBytes(),
            new ExampleBuilder().int64s("a", 1).toBytes());
    file = TestExamples.write(session, folder.resolve("other"), records);
    assertThat(build().feature("a").orElseThrow().obstacle())
        .contains(new Obstacle(1, "it is of kind int64, not float"));
  }

  @Test
  void manyRecordsOutgrowTheFirstColumns() {
    // 64 KiB of offsets suffice for 8192 records.
    int many = 20_000;
    file = TestExamples.write(session, folder.resolve("other"), 3, many);
    build();
    try (TfRecordIndex index = open()) {
      assertThat(index.summary().records()).isEqualTo(many);
      for (long record = 0; record < many; record += 997) {
        assertThat(IndexReads.values(index, "label", record))
            .isEqualTo(TestExamples.label(3, record));
      }
    }
  }

  @Test
  void progressEndsWithAllOfTheFile() throws IOException {
    List<Long> done = new ArrayList<>();
    long size = Files.size(file);
    TfRecordIndex.build(
        file,
        TfRecordIndex.Options.defaults()
            .withProgress((bytes, total) -> {
              assertThat(total).isEqualTo(size);
              done.add(bytes);
            }),
        session);
    assertThat(done).endsWith(size);
  }

  @Test
  void aFileThatIsWrittenMeanwhileHasNoIndex() {
    assertThatThrownBy(() ->
            TfRecordIndex.build(
                file,
                TfRecordIndex.Options.defaults()
                    .withProgress(
                        (_, _) -> TestExamples.write(session, file, List.of(new byte[0]))),
                session))
        .isInstanceOfSatisfying(
            MalformedFileException.class, e -> assertThat(e.kind()).isEqualTo("changed-meanwhile"));
    assertThat(folder.toFile().list()).containsExactly("data.tfrecord");
  }

  @Test
  void aClosedIndexIsRefusedNotRead() {
    build();
    TfRecordIndex index = open();
    index.close();
    assertThatThrownBy(() -> IndexReads.recordOffset(index, 0)).isInstanceOf(MisuseException.class);
    index.close();
  }
}
