// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.core.Linear;
import ai.djl.pytorch.engine.PtNDArray;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.torch.TorchOperators;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// The operators of [TorchOperators] on DJL arrays. As thread-safe as the arrays.
public final class OperatorArrays {
  private OperatorArrays() {}

  /// `softmax(scale · query · keyᵀ + mask) · value`, with the arguments of [TorchOperators#attend].
  ///
  /// @return `[batch, heads, length, size]`, in the query's manager; empty if libtorch lacks the call
  public static Optional<NDArray> attend(
      NDArray query,
      NDArray key,
      NDArray value,
      @Nullable NDArray mask,
      boolean causal,
      double scale) {
    return PyTorch.library()
        .operators()
        .map(operators ->
            made(
                query,
                query.size(),
                operators.attend(
                    handle(query),
                    handle(key),
                    handle(value),
                    handle(mask),
                    causal,
                    scale,
                    key.getShape().get(1) != query.getShape().get(1))));
  }

  /// `x · weightᵀ + bias`, in the manager of `x`.
  ///
  /// @param x `[…, inputs]`
  /// @param weight `[outputs, inputs]`
  /// @param bias `[outputs]`; null for none
  public static NDArray linear(NDArray x, NDArray weight, @Nullable NDArray bias) {
    Optional<TorchOperators> operators = PyTorch.library().operators();
    return operators.isEmpty()
        ? Linear.linear(x, weight, bias).singletonOrThrow()
        : made(
            x,
            x.size() / weight.getShape().get(1) * weight.getShape().get(0),
            operators.get().linear(handle(x), handle(weight), handle(bias)));
  }

  private static long handle(@Nullable NDArray array) {
    return array == null ? 0 : TorchArrays.torchArray(array).getHandle();
  }

  private static NDArray made(NDArray of, long elements, long handle) {
    PtNDArray torch = TorchArrays.torchArray(of);
    return GantryNDArray.over(torch.getManager(), handle, torch.getDataType(), elements);
  }
}
