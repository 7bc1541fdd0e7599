// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.Verdict;
import dev.gantry.formats.internal.weights.TensorValues;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/// Gantry's verdict on each corpus file is the gguf package's, or llama.cpp's where that is
/// stricter.
class GgufCorpusTest {
  private static final Path CORPUS = Path.of("src/test/resources/corpus/gguf");

  private static WeightsCatalogue open(String name) {
    return WeightsFormats.open(GantrySession.shared(), Location.of(CORPUS.resolve(name)));
  }

  static Stream<Map.Entry<String, Verdict>> valid() throws IOException {
    return Verdict.readAll(CORPUS.resolve("expected.json")).entrySet().stream()
        .filter(entry -> entry.getValue().valid());
  }

  @ParameterizedTest
  @MethodSource("valid")
  void aValidFileHasTheTensorsOfTheReference(Map.Entry<String, Verdict> expected) {
    WeightsCatalogue weights = open(expected.getKey());
    Verdict verdict = expected.getValue();
    assertThat(weights.tensors().keySet()).isEqualTo(verdict.sha256().keySet());
    weights
        .tensors()
        .forEach((name, tensor) ->
            assertThat(TensorValues.sha256(TensorValues.bytes(tensor)))
                .as(name)
                .isEqualTo(verdict.sha256().get(name)));
  }

  @Test
  void plainTypesLieAsMemoryHoldsThem() {
    Map<String, StoredTensor> tensors = open("every-type.gguf").tensors();
    for (String name : new String[] {"F32", "F16", "BF16"}) {
      StoredTensor tensor = tensors.get("p." + name);
      assertThat(tensor.dtype().name() + tensor.shape()).isEqualTo(name + "[4, 33]");
      assertThat(tensor.isPlain()).isTrue();
    }
  }

  @Test
  void notesAreMetadata() {
    assertThat(open("metadata.gguf").metadata())
        .containsEntry("general.architecture", "llama")
        .containsEntry("a.i64", "-5")
        .containsEntry("a.text", "grüße")
        .containsEntry("a.list", "[\"x\", \"y\", \"\"]")
        .containsEntry("general.alignment", "64");
  }

  @ParameterizedTest(name = "{0}: {1} at {2}")
  @CsvSource({
    "bad-magic.gguf, bad-magic, 0",
    "version-99.gguf, unknown-version, 4",
    "big-endian.gguf, big-endian, 4",
    "many-tensors.gguf, too-many-tensors, 8",
    "many-notes.gguf, too-many-notes, 16",
    "truncated-header.gguf, header-past-end, 16",
    "truncated-data.gguf, data-past-end, 396",
    "many-axes.gguf, too-many-axes, 331",
    "unknown-type.gguf, unknown-type, 351",
    "unaligned-offset.gguf, unaligned-offset, 355",
    "offset-beyond.gguf, data-past-end, 355",
    "huge-axis.gguf, shape-overflow, 331"
  })
  void aBadFileIsRefusedWithItsFault(String name, String kind, long offset) {
    MalformedFileException fault =
        catchThrowableOfType(MalformedFileException.class, () -> open(name));
    assertThat(fault).as(name).isNotNull();
    assertThat(fault.kind() + " at " + fault.offset()).isEqualTo(kind + " at " + offset);
    assertThat(fault.file()).isEqualTo(Location.of(CORPUS.resolve(name)));
    assertThat(fault.getMessage()).doesNotContain("\n");
  }

  @Test
  void everyBadFileOfTheCorpusIsTried() throws Exception {
    CsvSource tried =
        GgufCorpusTest.class
            .getDeclaredMethod(
                "aBadFileIsRefusedWithItsFault", String.class, String.class, long.class)
            .getAnnotation(CsvSource.class);
    assertThat(Stream.of(tried.value()).map(row -> row.substring(0, row.indexOf(','))))
        .containsExactlyInAnyOrderElementsOf(
            Verdict.readAll(CORPUS.resolve("expected.json")).entrySet().stream()
                .filter(entry -> !entry.getValue().valid())
                .map(Map.Entry::getKey)
                .toList());
  }
}
