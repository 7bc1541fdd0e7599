// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.SafetensorsHeader;
import dev.gantry.formats.spi.StoredTensor;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TensorSelectionTest {
  @TempDir static Path folder;

  private SequencedMap<String, StoredTensor> tensors;

  @BeforeEach
  void makeTensors() throws IOException {
    Path file =
        new WeightsFile()
            .raw("layers.1.weight", DType.BF16, TensorShape.of(6, 4), new byte[48])
            .raw("layers.0.weight", DType.F32, TensorShape.of(4, 2), new byte[32])
            .raw("layers.0.bias", DType.F4, TensorShape.of(3, 2, 1), new byte[3])
            .raw("odd", DType.F4, TensorShape.of(4, 3), new byte[6])
            .raw("scalar", DType.I64, TensorShape.of(), new byte[8])
            .raw("none", DType.F32, TensorShape.of(0, 5), new byte[0])
            .write(folder.resolve("made.safetensors"));
    tensors = SafetensorsHeader.read(GantrySession.shared(), file).tensors();
  }

  @Test
  void allAreAll() {
    assertThat(TensorSelection.all().of(tensors)).containsExactlyEntriesOf(tensors);
  }

  @Test
  void namesComeInTheOrderOfTheFile() {
    assertThat(TensorSelection.names(List.of("scalar", "layers.1.weight")).of(tensors).keySet())
        .containsExactly("layers.1.weight", "scalar");
  }

  @Test
  void prefixesAndPredicatesSelect() {
    assertThat(TensorSelection.prefix("layers.0.").of(tensors).keySet())
        .containsExactly("layers.0.weight", "layers.0.bias");
    assertThat(TensorSelection.prefix("nothing").of(tensors)).isEmpty();
    assertThat(TensorSelection.matching(t -> t.dtype() == DType.F4).of(tensors).keySet())
        .containsExactly("layers.0.bias", "odd");
  }

  @Test
  void anUnknownNameIsNamedWithTheNearest() {
    assertThatThrownBy(() -> TensorSelection.names(List.of("odd", "layers.2.weight")).of(tensors))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("'layers.2.weight'")
        .hasMessageContaining("'layers.1.weight', 'layers.0.weight'")
        .hasMessageNotContaining("scalar");
    assertThatThrownBy(() -> TensorSelection.names(List.of("xyz")).of(tensors))
        .isInstanceOf(MisuseException.class)
        .hasMessageStartingWith("there is no tensor 'xyz' among 6; their names are '")
        .hasMessageEndingWith(" and 2 more");
    SequencedMap<String, StoredTensor> one = TensorSelection.names(List.of("odd")).of(tensors);
    assertThatThrownBy(() -> TensorSelection.names(List.of("xyz")).of(one))
        .hasMessage("there is no tensor 'xyz'; the only one is 'odd'");
    assertThatThrownBy(() -> TensorSelection.names(List.of("xyz")).of(new LinkedHashMap<>()))
        .hasMessage("there is no tensor 'xyz'; there are none");
  }

  @Test
  void aHostileNameStaysOnOneLine() throws IOException {
    Path file =
        new WeightsFile()
            .raw("odd\\nforged", DType.U8, TensorShape.of(1), new byte[1])
            .write(folder.resolve("hostile.safetensors"));
    SequencedMap<String, StoredTensor> hostile =
        SafetensorsHeader.read(GantrySession.shared(), file).tensors();
    assertThatThrownBy(() -> TensorSelection.names(List.of("oddforged")).of(hostile))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("odd\\u000aforged");
  }

  @Test
  void rowsNarrowATensor() {
    StoredTensor whole = tensors.get("layers.1.weight");
    StoredTensor part =
        TensorSelection.prefix("layers")
            .rows("layers.1.weight", 2, 5)
            .of(tensors)
            .get("layers.1.weight");
    assertThat(whole).isNotNull();
    assertThat(part).isNotNull();
    assertThat(part.shape()).isEqualTo(TensorShape.of(3, 4));
    assertThat(part.extent().offset()).isEqualTo(whole.extent().offset() + 2 * 4 * 2);
    assertThat(part.extent().length()).isEqualTo(3 * 4 * 2);
  }

  @Test
  void rowsOfSeveralTensorsAreGiven() {
    SequencedMap<String, StoredTensor> parts =
        TensorSelection.all().rows("layers.1.weight", 2, 5).rows("odd", 0, 2).of(tensors);
    assertThat(parts.get("layers.1.weight")).returns(TensorShape.of(3, 4), part -> part.shape());
    assertThat(parts.get("odd")).returns(TensorShape.of(2, 3), part -> part.shape());
  }

  @Test
  void rowsOfWhatIsNotSelectedAreAMistake() {
    assertThatThrownBy(() -> TensorSelection.prefix("layers").rows("odd", 0, 2).of(tensors))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("'odd'");
    assertThatThrownBy(() -> TensorSelection.all().rows("oddd", 0, 2).of(tensors))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("similar names are 'odd'");
  }

  @Test
  void theFirstRuleThatMatchesCutsATensor() {
    SequencedMap<String, StoredTensor> parts =
        TensorSelection.slices()
            .along("layers.0.weight", 0)
            .along("layers.{i}.weight", 1)
            .build()
            .of(tensors, 0, 2);
    assertThat(parts.get("layers.0.weight")).returns(TensorShape.of(2, 2), part -> part.shape());
    assertThat(parts.get("layers.1.weight")).returns(TensorShape.of(6, 2), part -> part.shape());
  }

  @ParameterizedTest
  @CsvSource({
    "layers.0.weight, -1, 2",
    "layers.0.weight, 0, 5",
    "layers.0.weight, 3, 2",
    "none, 0, 1",
    "scalar, 0, 1",
    "odd, 0, 1",
    "odd, 1, 3",
  })
  void rowsThatCannotBeGivenAreAMistake(String name, long from, long to) {
    assertThatThrownBy(() -> TensorSelection.all().rows(name, from, to).of(tensors))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("'" + name + "'");
  }

  @ParameterizedTest
  @CsvSource({
    "odd, 0, 2, 3",
    "odd, 2, 4, 3",
    "odd, 4, 4, 0",
    "none, 0, 0, 0",
    "layers.0.bias, 1, 2, 1"
  })
  void rowsOfWholeBytesAreGiven(String name, long from, long to, long bytes) {
    assertThat(TensorSelection.all().rows(name, from, to).of(tensors).get(name))
        .returns(bytes, tensor -> tensor.extent().length());
  }
}
