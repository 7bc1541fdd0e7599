// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.TensorTransform;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Small weights and a block whose parameters have other names.
@ExtendWith(NoLeaks.class)
abstract class ParameterRulesFixture {
  static final LoadOptions DEFAULTS = LoadOptions.defaults();
  static final LoadOptions IN_PIECES =
      LoadOptions.builder().slabBytes(4096).optAsStored(true).build();

  @TempDir Path folder;
  NDManager manager;

  @BeforeEach
  void open() {
    manager = NDManager.newBaseManager();
  }

  @AfterEach
  void close() {
    manager.close();
  }

  /// A rule, and the DJL operation on an array with the same result.
  record Case(
      String name,
      Shape tensor,
      UnaryOperator<NDArray> expected,
      List<TensorTransform> transforms) {
    Case(
        String name, Shape tensor, UnaryOperator<NDArray> expected, TensorTransform... transforms) {
      this(name, tensor, expected, List.of(transforms));
    }

    @Override
    public String toString() {
      return name;
    }
  }

  static UnaryOperator<NDArray> rows(String index) {
    return array -> array.get(new NDIndex(index));
  }

  LoadReport load(Case each, DType dtype, ParameterList parameters, LoadOptions options)
      throws IOException {
    Path file = folder.resolve(dtype + ".safetensors");
    new WeightsFile()
        .tensor("t", dtype, PyTorch.shape(each.tensor()), values(each.tensor()))
        .write(file);
    ParameterNames names =
        ParameterNames.builder()
            .rule("p", "t", each.transforms().toArray(TensorTransform[]::new))
            .build();
    try (Weights weights = Weights.open(file)) {
      return weights.load(manager, parameters, names, options);
    }
  }

  static double[] values(Shape shape) {
    return IntStream.range(0, Math.toIntExact(shape.size())).mapToDouble(i -> i % 251).toArray();
  }

  static void assertMisuse(
      org.assertj.core.api.ThrowableAssert.ThrowingCallable call, String... words) {
    assertThatThrownBy(call).isInstanceOf(MisuseException.class).hasMessageContainingAll(words);
  }

  void assertRefused(Path file, ParameterList parameters, ParameterNames names, String... words) {
    assertMisuse(() -> load(file, parameters, names, DEFAULTS), words);
    assertThat(parameters.values()).noneMatch(Parameter::isInitialized);
    NoLeaks.assertNothingIsHeld();
  }

  LoadReport load(Path file, ParameterList parameters, ParameterNames names, LoadOptions options) {
    try (Weights weights = Weights.open(file)) {
      return weights.load(manager, parameters, names, options);
    }
  }

  Path matrix(String name, int rows, int columns) throws IOException {
    Shape shape = new Shape(rows, columns);
    return new WeightsFile()
        .tensor(name, DType.F32, PyTorch.shape(shape), values(shape))
        .write(folder.resolve("matrix.safetensors"));
  }

  static float[] values(ParameterList parameters, String name) {
    return parameters.get(name).getArray().toFloatArray();
  }

  static ParameterList parameters(String... names) {
    ParameterList list = new ParameterList();
    for (String name : names) {
      list.add(name, parameter(name).build());
    }
    return list;
  }

  static Parameter shaped(String name, long size) {
    return parameter(name).optShape(new Shape(size)).build();
  }

  static Parameter.Builder parameter(String name) {
    return Parameter.builder().setName(name).setType(Parameter.Type.WEIGHT);
  }
}
