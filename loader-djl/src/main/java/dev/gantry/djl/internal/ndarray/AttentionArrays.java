// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import ai.djl.ndarray.NDArray;
import ai.djl.pytorch.engine.PtNDArray;
import dev.gantry.djl.internal.torch.FusedAttention;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.torch.TorchLibrary;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// libtorch's own attention on DJL arrays, which DJL has no method for. As thread-safe as these.
public final class AttentionArrays {
  private AttentionArrays() {}

  /// `softmax(scale · query · keyᵀ + mask) · value`, with the arguments of [FusedAttention#of].
  ///
  /// @return `[batch, heads, length, size]`, in the query's manager; empty if libtorch lacks the call
  public static Optional<NDArray> attend(
      NDArray query,
      NDArray key,
      NDArray value,
      @Nullable NDArray mask,
      boolean causal,
      double scale) {
    TorchLibrary torch = PyTorch.library();
    if (torch.attention().isEmpty()) {
      return Optional.empty();
    }
    PtNDArray asked = TorchArrays.torchArray(query);
    long handle =
        torch
            .attention()
            .get()
            .of(
                asked.getHandle(),
                TorchArrays.torchArray(key).getHandle(),
                TorchArrays.torchArray(value).getHandle(),
                mask == null ? 0 : TorchArrays.torchArray(mask).getHandle(),
                causal,
                scale,
                key.getShape().get(1) != query.getShape().get(1));
    return Optional.of(
        GantryNDArray.over(asked.getManager(), handle, query.getDataType(), query.size()));
  }
}
