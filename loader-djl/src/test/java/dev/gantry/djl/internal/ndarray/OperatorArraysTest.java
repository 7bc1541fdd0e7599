// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assumptions.assumeThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.TransferException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// libtorch's operators compute the results that their definitions state.
class OperatorArraysTest {
  @ParameterizedTest
  @CsvSource({
    "1, 1, 1, false, false",
    "4, 4, 5, false, false",
    "4, 2, 5, false, true",
    "4, 1, 6, true, false",
    "4, 4, 6, true, false"
  })
  void attentionIsTheSoftmaxOfProducts(
      int heads, int groups, int length, boolean causal, boolean masked) {
    assumeItHasTheCall();
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray query = manager.randomNormal(new Shape(2, heads, length, 8));
      NDArray key = manager.randomNormal(new Shape(2, groups, length, 8));
      NDArray value = manager.randomNormal(new Shape(2, groups, length, 8));
      NDArray mask = masked ? manager.randomNormal(new Shape(2, 1, length, length)) : null;
      NDArray rows = manager.arange(length).reshape(1, 1, length, 1);
      NDArray columns = manager.arange(length).reshape(1, 1, 1, length);
      NDArray later = columns.gt(rows).toType(query.getDataType(), false).mul(-1e9f);

      NDArray fused = OperatorArrays.attend(query, key, value, mask, causal, 0.3).orElseThrow();

      NDArray expected = defined(query, key, value, causal ? later : mask);
      assertThat(fused.getShape()).isEqualTo(query.getShape());
      assertThat(fused.getManager()).isEqualTo(query.getManager());
      assertThat(fused.sub(expected).abs().max().getFloat()).isCloseTo(0, within(1e-5f));
    }
  }

  /// Skips the test before libtorch 2.7, which lacks the call.
  private static void assumeItHasTheCall() {
    assumeThat(System.getenv("PYTORCH_VERSION")).isNotEqualTo("2.5.1");
  }

  private static NDArray defined(
      NDArray query, NDArray key, NDArray value, @Nullable NDArray added) {
    long times = query.getShape().get(1) / key.getShape().get(1);
    NDArray scores = query.matMul(key.repeat(1, times).transpose(0, 1, 3, 2)).mul(0.3f);
    return (added == null ? scores : scores.add(added)).softmax(-1).matMul(value.repeat(1, times));
  }

  @ParameterizedTest
  @CsvSource({"true", "false"})
  void aLinearLayerIsTheProductAndTheBias(boolean biased) {
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray x = manager.randomNormal(new Shape(2, 3, 8));
      NDArray weight = manager.randomNormal(new Shape(5, 8));
      NDArray bias = biased ? manager.randomNormal(new Shape(5)) : null;

      NDArray computed = OperatorArrays.linear(x, weight, bias);

      NDArray product = x.matMul(weight.transpose());
      NDArray expected = bias == null ? product : product.add(bias);
      assertThat(computed.getShape()).isEqualTo(new Shape(2, 3, 5));
      assertThat(computed.sub(expected).abs().max().getFloat()).isCloseTo(0, within(1e-5f));
    }
  }

  @Test
  void whatLibtorchRefusesIsOneLine() {
    assumeItHasTheCall();
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray query = manager.ones(new Shape(1, 1, 2, 8));
      NDArray key = manager.ones(new Shape(1, 1, 2, 4));
      assertThatThrownBy(() -> OperatorArrays.attend(query, key, key, null, false, 1))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("scaled_dot_product_attention")
          .hasMessageNotContaining("\n");
    }
  }
}
