// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.export;

import ai.djl.ndarray.NDArray;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.names.NameRules;
import dev.gantry.djl.internal.torch.PyTorch;

/// A parameter, or the section of it that one tensor of a concatenation is.
record Piece(String path, NameRules.Rule.Tensors rule, NDArray array) {
  TensorShape shape() {
    return PyTorch.shape(array.getShape());
  }

  MisuseException refused(String tensor, String reason) {
    return new MisuseException(
        "parameter '%s' cannot be written as tensor '%s' by %s: %s"
            .formatted(path, tensor, rule, reason));
  }
}
