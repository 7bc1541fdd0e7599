// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.examples.ExampleReader;
import dev.gantry.formats.internal.examples.FeatureValue;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.internal.index.WireMessages.Fields;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// The reasons why a value does not lie at one offset.
class FeaturePlacesTest {
  private static final byte[] FOUR = {1, 2, 3, 4};

  private static String obstacle(Fields feature) throws Exception {
    ExampleReader scanner = ExampleReader.of(List.of("x"), TfRecordIndex.Options.LIMITS);
    scanner.read(record(WireMessages.example("x", feature)));
    FeatureValue value = scanner.value(0);
    return value.kind() == null ? "it is missing" : FeatureColumns.obstacle(value.kind(), value);
  }

  private static RawRecord record(byte[] bytes) {
    return new RawRecord(Path.of("file"), 0, 0, MemorySegment.ofArray(bytes));
  }

  private static List<String> names(ExampleReader reader) {
    return IntStream.range(0, reader.size()).mapToObj(reader::name).toList();
  }

  private static byte[] list(Fields fields) {
    return WireMessages.message(fields);
  }

  @Test
  void oneStringOrChunkHasAPlace() throws Exception {
    assertThat(obstacle(x -> x.writeByteArray(1, list(l -> l.writeByteArray(1, FOUR))))).isEmpty();
    assertThat(obstacle(x -> x.writeByteArray(1, list(l -> l.writeByteArray(1, new byte[0])))))
        .isEmpty();
    assertThat(obstacle(x -> x.writeByteArray(2, list(l -> l.writeByteArray(1, FOUR))))).isEmpty();
    // One float that is not packed still takes four bytes.
    assertThat(obstacle(x -> x.writeByteArray(2, list(l -> l.writeFloat(1, 1.5f))))).isEmpty();
    // An empty chunk changes no offset.
    assertThat(
            obstacle(x ->
                x.writeByteArray(
                    2,
                    list(l -> {
                      l.writeByteArray(1, FOUR);
                      l.writeByteArray(1, new byte[0]);
                    }))))
        .isEmpty();
  }

  @Test
  void othersHaveAReason() throws Exception {
    assertThat(obstacle(x -> {})).isEqualTo("it is missing");
    for (int kind = 1; kind <= 3; kind++) {
      int list = kind;
      assertThat(obstacle(x -> x.writeByteArray(list, new byte[0]))).isEqualTo("it has no value");
    }
    assertThat(
            obstacle(x ->
                x.writeByteArray(
                    1,
                    list(l -> {
                      l.writeByteArray(1, FOUR);
                      l.writeByteArray(1, FOUR);
                    }))))
        .isEqualTo("it has 2 values, not one");
    assertThat(
            obstacle(x ->
                x.writeByteArray(
                    2,
                    list(l -> {
                      l.writeFloat(1, 1);
                      l.writeFloat(1, 2);
                    }))))
        .isEqualTo("its 2 floats are not packed");
    // The list may also be split into several parts.
    assertThat(
            obstacle(x -> {
              x.writeByteArray(2, list(l -> l.writeByteArray(1, FOUR)));
              x.writeByteArray(2, list(l -> l.writeByteArray(1, FOUR)));
            }))
        .isEqualTo("its floats lie in 2 places");
    assertThat(obstacle(x -> x.writeByteArray(3, list(l -> l.writeByteArray(1, new byte[65])))))
        .isEqualTo("it has 65 integers, more than 64");
    assertThat(
            obstacle(x -> {
              x.writeByteArray(1, list(l -> l.writeByteArray(1, FOUR)));
              x.writeByteArray(2, list(l -> l.writeByteArray(1, FOUR)));
              x.writeByteArray(1, list(l -> l.writeByteArray(1, FOUR)));
            }))
        .isEqualTo("its kind changes to and fro, which not all parsers read alike");
  }

  @Test
  void aKindThatChangesOnceIsTheLastOne() throws Exception {
    ExampleReader scanner = ExampleReader.of(List.of(), TfRecordIndex.Options.LIMITS);
    byte[] record =
        WireMessages.example(
            "x",
            x -> {
              x.writeByteArray(1, list(l -> l.writeByteArray(1, FOUR)));
              x.writeByteArray(3, list(l -> l.writeInt64(1, 7)));
            });
    scanner.read(record(record));
    assertThat(scanner.value(0).kind()).isEqualTo(FeatureSpec.Kind.INT64);
    assertThat(scanner.value(0).isAmbiguous()).isFalse();
    long[] values = new long[1];
    scanner.value(0).copyTo(MemorySegment.ofArray(values), 0);
    assertThat(values).containsExactly(7);
  }

  @Test
  void namesAreBounded() throws Exception {
    ExampleReader scanner = ExampleReader.of(List.of(), TfRecordIndex.Options.LIMITS);
    String longest = "n".repeat(TfRecordIndex.Options.MAX_NAME_BYTES);
    scanner.read(record(WireMessages.example(longest, x -> {})));
    assertThat(names(scanner)).containsExactly(longest);
    assertThatThrownBy(() -> scanner.read(record(WireMessages.example(longest + "n", x -> {}))))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("4097 bytes");
    // No array is allocated for a name that the bytes do not have.
    assertThatThrownBy(
            () -> scanner.read(record(new byte[] {0x0a, 8, 0x0a, 6, 0x0a, -1, -1, -1, -1, 7})))
        .isInstanceOf(MalformedFileException.class);
  }

  @Test
  void ofAllFeaturesThereAreNoMoreThanTheMost() throws Exception {
    List<String> names =
        IntStream.rangeClosed(1, TfRecordIndex.Options.MAX_FEATURES)
            .mapToObj(Integer::toString)
            .toList();
    ExampleReader all = ExampleReader.of(List.of(), TfRecordIndex.Options.LIMITS);
    for (String name : names) {
      all.read(record(WireMessages.example(name, x -> {})));
    }
    byte[] another = WireMessages.example("another", x -> {});
    assertThatThrownBy(() -> all.read(record(another)))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("choose");
    ExampleReader chosen = ExampleReader.of(names, TfRecordIndex.Options.LIMITS);
    chosen.read(record(another));
    assertThat(names(chosen)).hasSize(TfRecordIndex.Options.MAX_FEATURES);
  }
}
