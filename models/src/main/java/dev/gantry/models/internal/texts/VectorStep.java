// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.index.NDIndex;
import dev.gantry.djl.internal.ndarray.OperatorArrays;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// What happens to vectors after pooling.
public sealed interface VectorStep {
  /// @param vectors FLOAT32 `[batch, width]`
  NDArray apply(NDArray vectors);

  /// Divides each vector by its length.
  record Normalize() implements VectorStep {
    @Override
    public NDArray apply(NDArray vectors) {
      return vectors.normalize(2, -1);
    }
  }

  /// A dense layer: `activation(x · weightᵀ + bias)`.
  record Dense(NDArray weight, @Nullable NDArray bias, UnaryOperator<NDArray> activation)
      implements VectorStep {
    @Override
    public NDArray apply(NDArray vectors) {
      return activation.apply(OperatorArrays.linear(vectors, weight, bias));
    }
  }

  /// Keeps the first numbers of each vector.
  record Truncate(int size) implements VectorStep {
    @Override
    public NDArray apply(NDArray vectors) {
      return vectors.get(new NDIndex(":, :{}", size));
    }
  }
}
