// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Parameter;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

/// Arrays as the parameters of a model that computes nothing.
final class ArraysBlock extends AbstractBlock {
  /// @param arrays with names; they stay the caller's
  ArraysBlock(NDList arrays) {
    for (NDArray array : arrays) {
      addParameter(
              Parameter.builder()
                  .setName(array.getName())
                  .setType(Parameter.Type.OTHER)
                  .optRequiresGrad(false)
                  .build())
          .setArray(array);
    }
  }

  @Override
  protected NDList forwardInternal(
      ParameterStore store, NDList inputs, boolean training, PairList<String, Object> parameters) {
    return inputs;
  }

  @Override
  public Shape[] getOutputShapes(Shape[] inputShapes) {
    return inputShapes;
  }
}
