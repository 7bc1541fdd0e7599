// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.Activation;
import java.util.Map;
import java.util.Objects;
import java.util.function.UnaryOperator;

/// The activation functions, by the names that `hidden_act` or `activation_function` of
/// `config.json` has for them.
public final class Activations {
  public static final UnaryOperator<NDArray> GELU = Activation::gelu;
  public static final UnaryOperator<NDArray> SILU = Activations::silu;
  public static final UnaryOperator<NDArray> RELU = Activation::relu;
  public static final UnaryOperator<NDArray> TANH_GELU = Activations::tanhGelu;

  public static final Map<String, UnaryOperator<NDArray>> KNOWN =
      Map.ofEntries(
          Map.entry("gelu", GELU),
          Map.entry("gelu_accurate", TANH_GELU),
          Map.entry("gelu_fast", TANH_GELU),
          Map.entry("gelu_new", TANH_GELU),
          Map.entry("gelu_python", GELU),
          Map.entry("gelu_pytorch_tanh", TANH_GELU),
          Map.entry("linear", x -> x),
          Map.entry("mish", Activations::mish),
          Map.entry("quick_gelu", x -> x.mul(Activation.sigmoid(x.mul(1.702f)))),
          Map.entry("relu", RELU),
          Map.entry("relu2", x -> Activation.relu(x).square()),
          Map.entry("sigmoid", Activation::sigmoid),
          Map.entry("silu", SILU),
          Map.entry("swish", SILU),
          Map.entry("tanh", Activation::tanh));

  private static final double ROOT = Math.sqrt(2 / Math.PI);

  private Activations() {}

  /// @param name one of [#KNOWN]
  public static UnaryOperator<NDArray> of(String name) {
    return Objects.requireNonNull(KNOWN.get(name), name);
  }

  private static NDArray silu(NDArray x) {
    return x.mul(Activation.sigmoid(x));
  }

  /// DJL's own mish takes the logarithm to base 2.
  private static NDArray mish(NDArray x) {
    return x.exp().add(1f).log().tanh().mul(x);
  }

  /// The approximation `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`.
  private static NDArray tanhGelu(NDArray x) {
    NDArray inner = x.mul(x).mul(x).mul(0.044715f).add(x).mul((float) ROOT);
    return x.mul(0.5f).mul(inner.tanh().add(1f));
  }
}
