// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Parameter;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

/// A block of parameters of any type and shape, which computes nothing.
class ParametersBlock extends AbstractBlock {
  /// Adds a parameter that has no array yet.
  Parameter add(String name) {
    return addParameter(
        Parameter.builder()
            .setName(name)
            .setType(Parameter.Type.OTHER)
            .optRequiresGrad(false)
            .build());
  }

  ParametersBlock with(String name, NDArray array) {
    add(name).setArray(array);
    return this;
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
