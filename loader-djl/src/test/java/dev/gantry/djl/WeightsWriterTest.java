// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(NoLeaks.class)
class WeightsWriterTest {
  @TempDir private Path folder;

  private final NDManager manager = NDManager.newBaseManager();

  @AfterEach
  void close() {
    manager.close();
  }

  private Map<String, NDArray> arrays() throws IOException {
    Path half =
        new WeightsFile()
            .tensor("half", DType.BF16, TensorShape.of(2), 1, 2)
            .write(folder.resolve("half.bin"));
    Map<String, NDArray> arrays = new LinkedHashMap<>();
    arrays.put("a", manager.arange(6f).reshape(2, 3));
    arrays.put("turned", manager.arange(6f).reshape(2, 3).transpose());
    arrays.put("long", manager.create(new long[] {1, 2}));
    try (Weights weights = Weights.open(half)) {
      arrays.put("half", weights.load(manager).singletonOrThrow());
    }
    return arrays;
  }

  private void assertSame(Weights weights, Map<String, NDArray> given) {
    NDList loaded = weights.load(manager);
    assertThat(weights.tensors().keySet()).containsExactlyInAnyOrderElementsOf(given.keySet());
    given.forEach((name, array) -> {
      NDArray there = loaded.get(name);
      assertThat(there.getShape()).isEqualTo(array.getShape());
      assertThat(there.getDataType()).isEqualTo(array.getDataType());
      assertThat(there.toType(DataType.FLOAT32, true).toFloatArray())
          .as(name)
          .containsExactly(array.toType(DataType.FLOAT32, true).toFloatArray());
    });
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "a/b", "a\\b"})
  void aNameWithWhichNoFileCanBeginIsRefusedWithTheOption(String name) {
    assertThatThrownBy(() -> WeightsWriter.builder().optName(name))
        .isInstanceOf(MisuseException.class)
        .hasMessageStartingWith("optName must be what a file's name can begin with")
        .hasMessageEndingWith("(was '" + name + "')");
  }

  @Test
  void oneFileHoldsTheArrays() throws IOException {
    Path file = folder.resolve("new").resolve("model.safetensors");
    Map<String, NDArray> arrays = arrays();
    WeightsWriter writer =
        WeightsWriter.builder().setFile(file).optMetadata("format", "pt").build();
    writer.write(arrays);
    try (Weights weights = Weights.open(file)) {
      assertSame(weights, arrays);
      assertThat(weights.metadata()).containsExactly(Map.entry("format", "pt"));
    }
    arrays.remove("long");
    writer.write(arrays);
    try (Weights weights = Weights.open(file)) {
      assertSame(weights, arrays);
    }
  }

  @Test
  void aFolderHoldsThemInSeveralFiles() throws IOException {
    Path target = folder.resolve("model");
    Map<String, NDArray> arrays = arrays();
    WeightsWriter writer =
        WeightsWriter.builder().setFolder(target).optFileBytes(30).optName("part").build();
    writer.write(arrays);
    try (Weights weights = Weights.open(target)) {
      assertSame(weights, arrays);
      assertThat(weights.files()).hasSize(3);
    }
    assertThat(Files.exists(target.resolve("part.safetensors.index.json"))).isTrue();
    assertThatThrownBy(() -> writer.write(arrays))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("name another place");
  }

  @Test
  void arraysOfAListHaveNames() {
    WeightsWriter writer = WeightsWriter.builder().setFile(folder.resolve("x.safetensors")).build();
    NDArray array = manager.ones(new Shape(2));
    assertThatThrownBy(() -> writer.write(new NDList(array)))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("array 0 of the list has no name");
    array.setName("ones");
    writer.write(new NDList(array));
    try (Weights weights = Weights.open(folder.resolve("x.safetensors"))) {
      assertSame(weights, Map.of("ones", array));
    }
    assertThat(folder.toFile().list()).containsExactly("x.safetensors");
  }

  @Test
  void aPlaceIsNeeded() {
    assertThatThrownBy(() -> WeightsWriter.builder().build())
        .isInstanceOf(MisuseException.class)
        .hasMessage("setFile or setFolder must be given (was null)");
    assertThatThrownBy(() -> WeightsWriter.builder().optFileBytes(0))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("optFileBytes");
    WeightsWriter.Builder one = WeightsWriter.builder().setFile(Path.of("one.safetensors"));
    assertThatThrownBy(() -> one.setFolder(Path.of("several")))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "setFile (one.safetensors) and setFolder (several) both choose where to write; call one"
                + " of them");
    assertThatThrownBy(() -> one.optName("part").build())
        .isInstanceOf(MisuseException.class)
        .hasMessageStartingWith("optName and optFileBytes are for the files of setFolder");
    assertThatThrownBy(() -> WeightsWriter.builder().setFile(Path.of("model.PT")))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "setFile must not be named like a file of another format: safetensors are written (was"
                + " model.PT)");
  }
}
