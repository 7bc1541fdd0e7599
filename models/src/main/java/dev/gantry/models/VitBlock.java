// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.nn.convolutional.Conv2d;
import dev.gantry.core.MisuseException;
import dev.gantry.models.Description.Patches;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// An image's patches as tokens of an encoder, with a class token before them, and one for distillation where the model
/// was trained by it.
///
/// Input: `pixel_values`, `[batch, channels, size, size]`.
final class VitBlock extends TransformerBlock {
  private final Patches sizes;
  private final @Nullable Parameter firstTokens;
  private final Parameter positions;
  private final Parameter patches;
  private final @Nullable Parameter patchBias;
  private final @Nullable Norm norm;

  VitBlock(Description description, Patches sizes) {
    super(description);
    this.sizes = sizes;
    int width = description.width();
    int patch = sizes.patch();
    Parameter.Type weight = Parameter.Type.WEIGHT;
    firstTokens =
        sizes.first() == 0 ? null : parameter("classToken", weight, 1, sizes.first(), width);
    positions = parameter("positions", weight, 1, sizes.count() + sizes.first(), width);
    patches = parameter("patches_weight", weight, width, sizes.channels(), patch, patch);
    patchBias = sizes.bias() ? parameter("patches_bias", Parameter.Type.BIAS, width) : null;
    norm = sizes.norm() ? norm("embeddingNorm", width) : null;
    addLayers(null);
  }

  @Override
  NDList forward(NDList inputs, Pass pass) {
    NDArray embedded = embedded(inputs.head(), pass);
    NDArray states = states(inputs.head(), embedded, pass, Shared.unmasked(embedded));
    return outputs(states, new TextInputs(inputs.head(), null, null), pass);
  }

  private NDArray embedded(NDArray pixels, Pass pass) {
    Shape shape = pixels.getShape();
    Shape image = new Shape(sizes.channels(), sizes.size(), sizes.size());
    if (shape.dimension() != 4 || !shape.slice(1).equals(image)) {
      throw new MisuseException("images must be of shape " + image + " (was " + shape + ")");
    }
    NDArray kernels = pass.value(patches);
    NDArray bias = patchBias == null ? null : pass.value(patchBias);
    NDArray cut =
        Conv2d.conv2d(
                Attention.cast(pixels, kernels),
                kernels,
                bias,
                new Shape(sizes.patch(), sizes.patch()))
            .singletonOrThrow();
    long batch = shape.get(0);
    long width = description().width();
    NDArray tokens = cut.reshape(batch, width, sizes.count()).transpose(0, 2, 1);
    if (firstTokens != null) {
      NDArray first = pass.value(firstTokens).broadcast(batch, sizes.first(), width);
      tokens = NDArrays.concat(new NDList(first, tokens), 1);
    }
    NDArray placed = tokens.add(pass.value(positions));
    return norm == null ? placed : norm.of(placed, pass);
  }

  @Override
  List<Shape> outputShapes(Shape input) {
    return outputShapes(input, new Shape(input.get(0), sizes.count() + (long) sizes.first()));
  }
}
