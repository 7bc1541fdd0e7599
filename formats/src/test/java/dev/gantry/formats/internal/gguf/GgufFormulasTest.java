// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.Verdict;
import dev.gantry.formats.internal.weights.TensorValues;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Quantised tensors have, bit for bit, the values to which the gguf package dequantises them. The
/// blocks of `gguf-types` are random bytes, so some scales are NaN, infinite or negative; every
/// NaN has the same bits here. The values of Q8_K and Q1_0, which the package does not dequantise,
/// were computed as ggml does.
class GgufFormulasTest {
  private static final Path CORPUS = Path.of("src/test/resources/corpus");

  private static WeightsCatalogue open(Path file) {
    return WeightsFormats.open(GantrySession.shared(), Location.of(file));
  }

  static Stream<Path> files() {
    return Stream.of(
        CORPUS.resolve("gguf-types/quantised.gguf"), CORPUS.resolve("gguf/every-type.gguf"));
  }

  @ParameterizedTest
  @MethodSource("files")
  void valuesAreTheReferences(Path file) throws IOException {
    Verdict verdict =
        Verdict.readAll(file.resolveSibling("expected.json")).get(file.getFileName().toString());
    WeightsCatalogue weights = open(file);
    assertThat(weights.quantised().keySet()).isEqualTo(verdict.float32().keySet());
    List<String> wrong =
        weights.quantised().values().stream()
            .filter(tensor -> !tensor.isPlain())
            .filter(tensor -> !digest(tensor).equals(verdict.float32().get(tensor.name())))
            .map(StoredTensor::name)
            .toList();
    assertThat(wrong).isEmpty();
    weights
        .quantised()
        .forEach((name, tensor) ->
            assertThat(Arrays.stream(tensor.shape().toArray()).boxed())
                .as(name)
                .isEqualTo(verdict.shapes().get(name)));
  }

  private static String digest(StoredTensor tensor) {
    return TensorValues.sha256(TensorValues.bytes(tensor));
  }

  @Test
  void blocksAreLoadedAsTheyAreStored() throws IOException {
    WeightsCatalogue weights = open(CORPUS.resolve("gguf-types/quantised.gguf"));
    Map<String, String> raw =
        Verdict.readAll(CORPUS.resolve("gguf-types/expected.json")).get("quantised.gguf").sha256();
    assertThat(weights.tensors().keySet()).isEqualTo(raw.keySet());
    weights
        .tensors()
        .forEach((name, tensor) -> {
          assertThat(tensor.isPlain()).isTrue();
          assertThat(tensor.dtype()).isEqualTo(DType.U8);
          assertThat(digest(tensor)).as(name).isEqualTo(raw.get(name));
        });
  }

  /// A rank's part needs the blocks of its rows, and only those of its columns if these are whole
  /// blocks.
  @Test
  void partsAreReadByThemselves() {
    WeightsCatalogue weights = open(CORPUS.resolve("gguf-types/quantised.gguf"));
    for (StoredTensor tensor : weights.quantised().values()) {
      byte[] whole = TensorValues.bytes(tensor);
      if (tensor.shape().rank() != 2) {
        continue;
      }
      int row = whole.length / 5;
      assertThat(TensorValues.bytes(tensor.rows(1, 3)))
          .as(tensor.name())
          .isEqualTo(Arrays.copyOfRange(whole, row, 3 * row));
      StoredTensor right = tensor.slice(1, List.of(new StoredTensor.Span(256, 512)));
      byte[] part = TensorValues.bytes(right);
      for (int i = 0; i < 5; i++) {
        assertThat(Arrays.copyOfRange(part, i * row / 2, (i + 1) * row / 2))
            .as(tensor.name())
            .isEqualTo(Arrays.copyOfRange(whole, i * row + row / 2, (i + 1) * row));
      }
    }
  }
}
