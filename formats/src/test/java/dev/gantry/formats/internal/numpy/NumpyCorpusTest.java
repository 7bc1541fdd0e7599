// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

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
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/// Gantry's verdict on each corpus file is NumPy's, except for the files that Gantry refuses by
/// the corpus' README, with a reason.
class NumpyCorpusTest {
  private static final Path CORPUS = Path.of("src/test/resources/corpus/numpy");

  static Stream<Map.Entry<String, Verdict>> valid() throws IOException {
    return Verdict.readAll(CORPUS.resolve("expected.json")).entrySet().stream()
        .filter(entry -> entry.getValue().valid());
  }

  @ParameterizedTest
  @MethodSource("valid")
  void aValidFileIsReadAsNumpyReadsIt(Map.Entry<String, Verdict> expected) {
    Path file = CORPUS.resolve(expected.getKey());
    Verdict verdict = expected.getValue();
    WeightsCatalogue weights = WeightsFormats.open(GantrySession.shared(), Location.of(file));
    assertThat(file.toString()).endsWith("." + weights.format());
    assertThat(weights.files()).containsExactly(Location.of(file));
    Map<String, StoredTensor> tensors =
        weights.tensors().values().stream()
            .collect(Collectors.toMap(tensor -> nameInVerdict(expected.getKey(), tensor), t -> t));
    assertThat(tensors.keySet()).isEqualTo(verdict.dtypes().keySet());
    tensors.forEach((name, tensor) -> {
      assertThat(tensor.dtype().name()).isEqualTo(verdict.dtypes().get(name));
      assertThat(LongStream.of(tensor.shape().toArray()).boxed())
          .isEqualTo(verdict.shapes().get(name));
      assertThat(TensorValues.sha256(TensorValues.bytes(tensor)))
          .isEqualTo(verdict.sha256().get(name));
    });
    weights.verify(GantrySession.shared());
  }

  /// Returns a tensor's name in the verdicts. They leave the name of a single array empty, to
  /// which Gantry gives the file's name.
  private static String nameInVerdict(String file, StoredTensor tensor) {
    if (!file.endsWith(".npy")) {
      return tensor.name();
    }
    assertThat(tensor.name() + ".npy").isEqualTo(file);
    return "";
  }

  @ParameterizedTest(name = "{0}: {1} at {2}")
  @CsvSource({
    "bad-magic.npy, bad-magic, 0",
    "code.npy, not-a-dictionary, 10",
    "crc.npz, checksum-mismatch, 55",
    "extra-key.npy, unknown-key, 68",
    "float-shape.npy, invalid-shape, 61",
    "huge-shape.npy, shape-overflow, 10",
    "missing-key.npy, missing-key, 10",
    "negative-shape.npy, negative-axis, 61",
    "no-dict.npy, not-a-dictionary, 10",
    "object.npy, object-dtype, 20",
    "structured.npy, structured-dtype, 20",
    "trailing.npy, trailing-bytes, 188",
    "truncated-data.npy, data-past-end, 187",
    "truncated-header.npy, header-past-end, 40",
    "truncated.npz, invalid-archive, 0",
    "unicode-descr.npy, text-dtype, 20",
    "unknown-descr.npy, unknown-dtype, 20",
    "version-9.npy, unknown-version, 6"
  })
  void aBadFileIsRefusedWithItsFault(String name, String kind, long offset) {
    Path file = CORPUS.resolve(name);
    MalformedFileException fault =
        catchThrowableOfType(
            MalformedFileException.class,
            () ->
                WeightsFormats.open(GantrySession.shared(), Location.of(file))
                    .verify(GantrySession.shared()));
    assertThat(fault).as(name).isNotNull();
    assertThat(fault.kind() + " at " + fault.offset()).isEqualTo(kind + " at " + offset);
    assertThat(fault.file()).isEqualTo(Location.of(file));
    assertThat(fault.getMessage()).doesNotContain("\n");
  }

  @Test
  void everyBadFileOfTheCorpusIsTried() throws Exception {
    CsvSource tried =
        NumpyCorpusTest.class
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

  @Test
  void whatHoldsObjectsSaysSoInOneLine() {
    Path file = CORPUS.resolve("object.npy");
    MalformedFileException fault =
        catchThrowableOfType(
            MalformedFileException.class,
            () -> WeightsFormats.open(GantrySession.shared(), Location.of(file)));
    assertThat(fault.getMessage())
        .isEqualTo(
            file
                + ": offset 20: object-dtype: dtype '|O' holds Python objects, which Gantry does"
                + " not read");
  }

  /// A load by any transport returns the bytes of these arrays unchanged.
  @Test
  void whatLiesAsMemoryHoldsItIsPlain() {
    for (String name : new String[] {"f4.npy", "fortran-one-axis.npy", "empty.npy", "larger.npy"}) {
      assertThat(
              WeightsFormats.open(GantrySession.shared(), Location.of(CORPUS.resolve(name)))
                  .tensors()
                  .values())
          .as(name)
          .allMatch(StoredTensor::isPlain);
    }
    WeightsCatalogue stored =
        WeightsFormats.open(GantrySession.shared(), Location.of(CORPUS.resolve("stored.npz")));
    assertThat(stored.tensors().values().stream().filter(tensor -> !tensor.isPlain()))
        .map(StoredTensor::name)
        .containsExactly("f");
    assertThat(stored.checksums()).hasSize(5);
  }
}
