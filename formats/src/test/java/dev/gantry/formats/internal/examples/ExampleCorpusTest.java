// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.FieldView;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.formats.tfrecord.Verdict;
import dev.gantry.testing.NoLeaks;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Every feature of the corpus is decoded exactly.
@ExtendWith(NoLeaks.class)
class ExampleCorpusTest {
  private static final ValueLayout.OfLong LENGTHS =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  static Stream<Map.Entry<String, Verdict>> examples() {
    return Verdict.all().entrySet().stream()
        .filter(entry -> !entry.getValue().features().isEmpty());
  }

  static List<RawRecord> records(Path file) {
    List<RawRecord> records = new ArrayList<>();
    try (GantrySession session = GantrySession.open();
        TfRecordReader reader = TfRecordReader.open(session, file, TfRecordOptions.defaults())) {
      while (reader.next()) {
        MemorySegment copy = MemorySegment.ofArray(reader.record().toArray(ValueLayout.JAVA_BYTE));
        records.add(new RawRecord(file, reader.number(), reader.offset(), copy));
      }
    }
    return records;
  }

  /// Returns the bytes of a feature of all records, each padded with `padding` to the length of
  /// the longest.
  private static byte[] expected(Verdict verdict, String name, int rowBytes, byte padding) {
    ByteBuffer all =
        ByteBuffer.allocate(verdict.features().size() * rowBytes).order(ByteOrder.LITTLE_ENDIAN);
    Arrays.fill(all.array(), padding);
    int row = 0;
    for (Map<String, Verdict.Values> features : verdict.features()) {
      all.position(row++ * rowBytes);
      Verdict.Values values = features.get(name);
      for (Object value : values == null ? List.of() : values.list()) {
        switch (value) {
          case byte[] bytes -> all.put(bytes);
          case Float number -> all.putFloat(number);
          case Long number -> all.putLong(number);
          default -> throw new IllegalArgumentException(value.toString());
        }
      }
    }
    return all.array();
  }

  /// Returns how many elements the feature of a lengths field has in each record.
  private static long[] lengths(Verdict verdict, String name) {
    String feature = name.substring(0, name.length() - FeatureSpec.LENGTH_SUFFIX.length());
    return verdict.features().stream()
        .map(features -> features.get(feature))
        .mapToLong(values ->
            values == null
                ? 0
                : values.kind().equals("bytes")
                    ? values.list().stream().mapToLong(each -> ((byte[]) each).length).sum()
                    : values.list().size())
        .toArray();
  }

  private static FeatureSpec variable(String name, String kind, FeatureSpec.PadTo padTo) {
    return switch (kind) {
      case "bytes" ->
          new FeatureSpec.VariableLength(name, FeatureSpec.Kind.BYTES, DType.U8, 1000, 0, padTo);
      case "float" ->
          new FeatureSpec.VariableLength(name, FeatureSpec.Kind.FLOAT, DType.F32, 1000, 0, padTo);
      default ->
          new FeatureSpec.VariableLength(name, FeatureSpec.Kind.INT64, DType.I64, 1000, 0, padTo);
    };
  }

  @ParameterizedTest
  @MethodSource("examples")
  void everyValueIsThere(Map.Entry<String, Verdict> entry) {
    Verdict verdict = entry.getValue();
    List<RawRecord> records = records(Verdict.CORPUS.resolve(entry.getKey()));
    Map<String, Verdict.Values> first = verdict.features().getFirst();
    for (FeatureSpec.PadTo padTo : FeatureSpec.PadTo.values()) {
      List<FeatureSpec> specs =
          first.entrySet().stream()
              .map(feature -> variable(feature.getKey(), feature.getValue().kind(), padTo))
              .toList();
      ExampleParser parser = new ExampleParser(specs);
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment batch = arena.allocate(parser.batchBytes(records.size()));
        batch.fill((byte) 0x5a);
        List<FieldView> views = parser.parse(records, batch);
        assertThat(views.stream().map(FieldView::name).toList())
            .isEqualTo(parser.fields().stream().map(Field::name).toList());
        for (FieldView view : views) {
          if (view.name().endsWith(FeatureSpec.LENGTH_SUFFIX)) {
            assertThat(batch.asSlice(view.offset(), 8L * records.size()).toArray(LENGTHS))
                .as(view.name())
                .containsExactly(lengths(verdict, view.name()));
            continue;
          }
          int elementBytes = view.dtype().bits() / 8;
          int rowBytes = (int) view.shape().dimension(1) * elementBytes;
          assertThat(view.shape().dimension(0)).isEqualTo(records.size());
          assertThat(view.offset() % elementBytes).isZero();
          assertThat(
                  batch
                      .asSlice(view.offset(), (long) rowBytes * records.size())
                      .toArray(ValueLayout.JAVA_BYTE))
              .as(view.name())
              .isEqualTo(expected(verdict, view.name(), rowBytes, (byte) 0));
        }
      }
    }
  }

  private static void parse(String file, FeatureSpec... specs) {
    List<RawRecord> records = records(Verdict.CORPUS.resolve(file));
    ExampleParser parser = new ExampleParser(List.of(specs));
    try (Arena arena = Arena.ofConfined()) {
      parser.parse(records, arena.allocate(parser.batchBytes(records.size())));
    }
  }

  @Test
  void aMissingFeatureIsAnErrorOrItsDefault() {
    String file = "examples-missing-feature.tfrecord";
    RawRecord second = records(Verdict.CORPUS.resolve(file)).get(1);
    assertThatThrownBy(() -> parse(file, FeatureSpec.int64s("label")))
        .isInstanceOfSatisfying(
            MalformedFileException.class,
            fault -> {
              assertThat(fault.kind()).isEqualTo("missing-feature");
              assertThat(fault.offset()).isEqualTo(second.offset());
            })
        .hasMessageContaining(file)
        .hasMessageContaining("record 1: the record lacks feature 'label'");

    ExampleParser parser =
        new ExampleParser(
            List.of(
                new FeatureSpec.FixedLength(
                    "label",
                    FeatureSpec.Kind.INT64,
                    DType.I64,
                    TensorShape.of(),
                    Optional.of(-7))));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment batch = arena.allocate(parser.batchBytes(3), 8);
      FieldView view = parser.parse(records(Verdict.CORPUS.resolve(file)), batch).getFirst();
      assertThat(view.shape()).isEqualTo(TensorShape.of(3));
      assertThat(view.strides()).containsExactly(1L);
      assertThat(batch.asSlice(view.offset(), 24).toArray(ValueLayout.JAVA_LONG))
          .containsExactly(1, -7, 3);
    }
  }

  /// If records have a feature with the name of a lengths field, the field has that feature's
  /// values.
  @Test
  void aFeatureThatIsNamedAsTheLengthsOfAnotherTakesTheirPlace() {
    FeatureSpec tokens = variable("tokens", "int64", FeatureSpec.PadTo.MOST);
    FeatureSpec own = FeatureSpec.int64s("tokens_length");
    assertThat(new ExampleParser(List.of(tokens)).fields())
        .containsExactly(tokens.field(), own.field());
    assertThat(new ExampleParser(List.of(own, tokens)).fields())
        .containsExactly(own.field(), tokens.field());
  }

  @Test
  void aWrongLengthIsAnError() {
    assertThatThrownBy(
            () -> parse("examples-wrong-length.tfrecord", FeatureSpec.bytes("image", 8, 8)))
        .isInstanceOfSatisfying(
            MalformedFileException.class,
            fault -> assertThat(fault.kind()).isEqualTo("wrong-length"))
        .hasMessageContaining("record 1: feature 'image' has length 63, not 64");
  }

  @Test
  void aWrongKindIsAnError() {
    assertThatThrownBy(() -> parse("examples-floats.tfrecord", FeatureSpec.int64s("y")))
        .isInstanceOfSatisfying(
            MalformedFileException.class, fault -> assertThat(fault.kind()).isEqualTo("wrong-kind"))
        .hasMessageContaining("record 0: feature 'y' is of kind FLOAT, not INT64");
  }

  @Test
  void recordsThatAreNoMessagesAreAnError() {
    assertThatThrownBy(() -> parse("blobs.tfrecord", FeatureSpec.int64s("y")))
        .isInstanceOfSatisfying(
            MalformedFileException.class,
            fault -> assertThat(fault.kind()).isIn("invalid-proto", "missing-feature"));
  }

  @Test
  void theSchemaIsInferred() {
    try (GantrySession session = GantrySession.open()) {
      assertThat(infer(session, "examples-images.tfrecord"))
          .containsExactly(FeatureSpec.bytes("image", 784), FeatureSpec.int64s("label"));
      assertThat(infer(session, "examples-floats.tfrecord"))
          .containsExactly(FeatureSpec.floats("x", 37), FeatureSpec.floats("y"));
      assertThat(infer(session, "examples-variable-length.tfrecord"))
          .containsExactly(
              variable("text", "bytes", FeatureSpec.PadTo.LONGEST),
              variable("tokens", "int64", FeatureSpec.PadTo.LONGEST));
      assertThat(infer(session, "examples-missing-feature.tfrecord"))
          .containsExactly(
              FeatureSpec.bytes("image", 64),
              new FeatureSpec.VariableLength(
                  "label", FeatureSpec.Kind.INT64, DType.I64, 1, 0, FeatureSpec.PadTo.LONGEST));
      assertThatThrownBy(() -> infer(session, "empty.tfrecord")).hasMessageContaining("no-records");
    }
  }

  private static List<FeatureSpec> infer(GantrySession session, String file) {
    List<Location> files = List.of(Location.of(Verdict.CORPUS.resolve(file)));
    return Schema.infer(session, files, TfRecordOptions.defaults(), Schema.USUAL_RECORDS);
  }
}
