// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.Framed;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.proto.Example;
import dev.gantry.formats.tfrecord.proto.Feature;
import dev.gantry.formats.tfrecord.proto.Features;
import dev.gantry.testing.NoLeaks;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Features of records that no batch uses, and the common schema of several files.
@ExtendWith(NoLeaks.class)
class UnknownFeatureTest {
  private static final ExampleParser PARSER =
      new ExampleParser(
          List.of(
              FeatureSpec.int64s("label"),
              new FeatureSpec.FixedSteps(
                  "steps", FeatureSpec.Kind.INT64, DType.I64, 2, TensorShape.of())));

  @TempDir Path folder;

  private static RawRecord record(byte[] bytes) {
    return new RawRecord(Path.of("file"), 7, 40, MemorySegment.ofArray(bytes));
  }

  private static void assertRefused(ExampleBuilder example, String name) {
    assertThatThrownBy(() -> PARSER.requireNoOthers(record(example.toBytes())))
        .isInstanceOf(MalformedFileException.class)
        .hasMessage(
            "file: offset 40: unknown-feature: record 7: feature '"
                + name
                + "' is unknown; the features are [label, steps]");
  }

  @Test
  void whatIsWantedIsNoOther() {
    assertThatCode(() -> PARSER.requireNoOthers(record(new byte[0]))).doesNotThrowAnyException();
    ExampleBuilder example =
        new ExampleBuilder().floats("label", 1).int64Steps("steps", List.of(new long[] {1}));
    assertThatCode(() -> PARSER.requireNoOthers(record(example.toBytes())))
        .doesNotThrowAnyException();
  }

  @Test
  void groupsThatLieTooDeepAreRefused() {
    byte[] groups = new byte[200_000];
    // Each byte begins a group of field 9.
    Arrays.fill(groups, (byte) (9 << 3 | 3));
    assertThatThrownBy(() -> PARSER.requireNoOthers(record(groups)))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("more than 100 nested groups");
  }

  /// A string of no bytes takes two bytes in the file, and sixteen of heap.
  @Test
  void moreStringsThanARecordMayHaveAreRefused() {
    byte[][] strings = new byte[1 << 21][];
    Arrays.fill(strings, new byte[0]);
    byte[] most = new ExampleBuilder().bytes("label", strings).toBytes();
    assertThatCode(() -> PARSER.requireNoOthers(record(most))).doesNotThrowAnyException();
    byte[] more = new ExampleBuilder().bytes("label", strings).bytes("b", new byte[1]).toBytes();
    assertThatThrownBy(() -> PARSER.requireNoOthers(record(more)))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("more than 2097152 strings");
  }

  /// Makes a protobuf field that holds these bytes end to end.
  private static byte[] message(int field, byte[]... parts) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      all.writeBytes(part);
    }
    var value =
        UnknownFieldSet.Field.newBuilder()
            .addLengthDelimited(ByteString.copyFrom(all.toByteArray()));
    return UnknownFieldSet.newBuilder().addField(field, value.build()).build().toByteArray();
  }

  /// Makes a record of one feature (field 1), or of one list of features (field 2).
  private static byte[] ofOne(int field, byte[] value) {
    return message(field, message(1, message(1, new byte[] {'a'}), value));
  }

  private static byte[] repeated(String piece, int count) {
    return HexFormat.of().parseHex(piece.repeat(count));
  }

  static List<byte[]> oneOfTooManyPieces() {
    int more = (1 << 21) + 1;
    return List.of(
        ofOne(1, message(2, message(2, repeated("0d00000000", more)))),
        ofOne(1, message(2, message(3, repeated("0800", more)))),
        ofOne(2, repeated("1200", more)));
  }

  @ParameterizedTest
  @MethodSource("oneOfTooManyPieces")
  void moreNumbersOrPartsThanARecordMayHaveAreRefused(byte[] bytes) {
    assertThatThrownBy(() -> ExampleReader.ofAll().read(record(bytes)))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("more than 2097152 strings, numbers that are not packed, and parts");
  }

  /// A step takes the memory of the step before.
  @Test
  void theStringsOfRecordsOrOfStepsAreNotAddedUp() {
    byte[] strings = ofOne(1, message(2, message(1, repeated("0a00", (1 << 20) + 1))));
    byte[] steps = ofOne(2, message(2, repeated("0a040a020a00", (1 << 21) + 1)));
    ExampleReader reader = ExampleReader.ofAll();
    List<byte[]> records = List.of(strings, strings, steps);
    assertThatCode(() -> records.forEach(each -> reader.read(record(each))))
        .doesNotThrowAnyException();
  }

  @Test
  void moreFeaturesThanAReaderOfAllKeepsAreRefused() {
    ExampleBuilder example = new ExampleBuilder();
    for (int i = 0; i <= 1 << 16; i++) {
      example.int64s("f" + i);
    }
    byte[] bytes = example.toBytes();
    assertThatThrownBy(() -> PARSER.requireNoOthers(record(bytes)))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("more than 65536 features");
  }

  @Test
  void anotherFeatureIsRefused() {
    assertRefused(new ExampleBuilder().int64s("label", 1).int64s("other", 2), "other");
    assertRefused(new ExampleBuilder().bytesSteps("other", List.of(new byte[1])), "other");
  }

  @Test
  void aListIsNoFeatureOfItsName() {
    assertRefused(new ExampleBuilder().int64s("steps", 1), "steps");
    assertRefused(new ExampleBuilder().int64Steps("label", List.of(new long[1])), "label");
  }

  @Test
  void aFeatureThatHoldsNoListIsNone() {
    byte[] bytes =
        Example.newBuilder()
            .setFeatures(Features.newBuilder().putFeature("other", Feature.getDefaultInstance()))
            .build()
            .toByteArray();
    assertThatCode(() -> PARSER.requireNoOthers(record(bytes))).doesNotThrowAnyException();
  }

  @Test
  void noExampleIsRefused() {
    assertThatThrownBy(() -> PARSER.requireNoOthers(record(new byte[] {1, 2, 3})))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageStartingWith("file: offset 40: invalid-proto: record 7: ");
  }

  @Test
  void theSchemaOfSeveralFilesIsOfAllTheirRecords() throws IOException {
    Path empty = Files.write(folder.resolve("empty"), new byte[0]);
    Path first = write("first", new ExampleBuilder().int64s("a", 1).floats("b", 1, 2));
    Path second = write("second", new ExampleBuilder().int64s("a", 2).floats("b", 1, 2, 3));
    try (GantrySession session = GantrySession.open()) {
      TfRecordOptions options = TfRecordOptions.defaults();
      List<Path> files = List.of(empty, first, second);
      assertThat(
              Schema.infer(
                  session, files.stream().map(Location::of).toList(), options, Long.MAX_VALUE))
          .containsExactly(
              FeatureSpec.int64s("a"),
              new FeatureSpec.VariableLength(
                  "b", FeatureSpec.Kind.FLOAT, DType.F32, 3, 0, FeatureSpec.PadTo.LONGEST));
      assertThat(Schema.infer(session, files.stream().map(Location::of).toList(), options, 1))
          .containsExactly(FeatureSpec.int64s("a"), FeatureSpec.floats("b", 2));
      assertThatThrownBy(() ->
              Schema.infer(session, List.of(Location.of(empty), Location.of(empty)), options, 1))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("no-records");
    }
  }

  @Test
  void filesBehindTheRecordsThatTellAreNotOpened() throws IOException {
    Path first = write("first", new ExampleBuilder().int64s("a", 1));
    List<Path> files = List.of(first, folder.resolve("missing"));
    try (GantrySession session = GantrySession.open()) {
      TfRecordOptions options = TfRecordOptions.defaults();
      assertThat(Schema.infer(session, files.stream().map(Location::of).toList(), options, 1))
          .containsExactly(FeatureSpec.int64s("a"));
      assertThatThrownBy(
              () -> Schema.infer(session, files.stream().map(Location::of).toList(), options, 2))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("missing");
    }
  }

  private Path write(String name, ExampleBuilder example) throws IOException {
    return Files.write(folder.resolve(name), Framed.of(List.of(example.toBytes())));
  }
}
