// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.tfrecord.proto.Example;
import dev.gantry.formats.tfrecord.proto.SequenceExample;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class ExampleBuilderTest {
  /// Returns the corpus files whose features are sorted, packed and not empty. The corpus writes
  /// an empty feature as a list of no bytes, and protobuf writes no list.
  static Stream<String> sortedAndPacked() {
    return Stream.of(
        "examples-images.tfrecord",
        "examples-floats.tfrecord",
        "examples-labels-of-many-widths.tfrecord",
        "examples-missing-feature.tfrecord",
        "examples-gzip.tfrecord.gz");
  }

  @ParameterizedTest
  @MethodSource("sortedAndPacked")
  void examplesAreThoseOfTheCorpus(String file) {
    Verdict verdict = Verdict.all().get(file);
    assertThat(verdict).isNotNull();
    assertThat(
            verdict.features().stream()
                .map(example -> TfRecordCorpusTest.digest(built(example).toBytes())))
        .isEqualTo(verdict.records());
  }

  static ExampleBuilder built(Map<String, Verdict.Values> features) {
    ExampleBuilder builder = new ExampleBuilder();
    features.forEach((name, values) -> {
      List<Object> list = values.list();
      switch (values.kind()) {
        case "bytes" -> builder.bytes(name, list.toArray(byte[][]::new));
        case "float" -> {
          float[] floats = new float[list.size()];
          for (int i = 0; i < floats.length; i++) {
            floats[i] = (Float) list.get(i);
          }
          builder.floats(name, floats);
        }
        default -> builder.int64s(name, list.stream().mapToLong(value -> (Long) value).toArray());
      }
    });
    return builder;
  }

  @Test
  void theOrderIsTheNamesOrTheInsertions() {
    byte[] sorted = new ExampleBuilder().int64s("b", 1).int64s("a", 2).toBytes();
    assertThat(new ExampleBuilder().int64s("a", 2).int64s("b", 1).toBytes()).isEqualTo(sorted);
    byte[] inserted = ExampleBuilder.inOrderOfInsertion().int64s("b", 1).int64s("a", 2).toBytes();
    assertThat(inserted).hasSameSizeAs(sorted).isNotEqualTo(sorted);
    assertThat(ExampleBuilder.inOrderOfInsertion().int64s("a", 2).int64s("b", 1).toBytes())
        .isEqualTo(sorted);
  }

  @Test
  void stepsMakeASequence() throws InvalidProtocolBufferException {
    ExampleBuilder builder =
        new ExampleBuilder()
            .int64s("label", 3)
            .bytesSteps("frames", List.of(new byte[] {1, 2}, new byte[] {3, 4}))
            .floatSteps("x", List.of(new float[] {1, 2}))
            .int64Steps("t", List.of(new long[] {-1}, new long[] {7}));
    SequenceExample sequence = SequenceExample.parseFrom(builder.toBytes());
    assertThat(sequence.toByteArray()).isEqualTo(builder.toBytes());
    assertThat(sequence.getContext().getFeatureOrThrow("label").getInt64List().getValue(0))
        .isEqualTo(3L);
    assertThat(sequence.getFeatureLists().getFeatureListCount()).isEqualTo(3);
    assertThat(sequence.getFeatureLists().getFeatureListOrThrow("t").getFeature(1).getInt64List())
        .extracting(list -> list.getValue(0))
        .isEqualTo(7L);
    assertThat(Example.parseFrom(builder.toBytes()).getFeatures().getFeatureCount()).isOne();
  }

  @Test
  void nullIsMisuse() {
    ExampleBuilder builder = new ExampleBuilder();
    for (ThrowingCallable call :
        List.<ThrowingCallable>of(
            () -> builder.floats(null, 1),
            () -> builder.int64s("x", (long[]) null),
            () -> builder.bytes("x", (byte[]) null),
            () -> builder.floatSteps("x", null),
            () -> builder.int64Steps(null, List.of()))) {
      assertThatThrownBy(call)
          .isInstanceOf(MisuseException.class)
          .hasMessageEndingWith(" must be given (was null)");
    }
  }
}
