// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.nn.convolutional.Conv2d;
import dev.gantry.core.MisuseException;
import java.util.List;

/// ViT: an image's patches as tokens of an encoder, with a class token before them.
///
/// Input: `pixel_values`, `[batch, channels, size, size]`.
final class VitBlock extends TransformerBlock {
  private final Shape image;
  private final int patch;
  private final long count;
  private final Parameter classToken;
  private final Parameter positions;
  private final Parameter patches;
  private final Parameter patchBias;
  private final Norm norm;

  /// @param size of an image in pixels, as `patch`
  VitBlock(Layers layers, int channels, int size, int patch, Head head, int headSize) {
    super(layers, head, headSize);
    this.image = new Shape(channels, size, size);
    this.patch = patch;
    this.count = (long) (size / patch) * (size / patch);
    int width = layers.width();
    classToken = parameter("classToken", Parameter.Type.WEIGHT, 1, 1, width);
    positions = parameter("positions", Parameter.Type.WEIGHT, 1, count + 1, width);
    patches = parameter("patches_weight", Parameter.Type.WEIGHT, width, channels, patch, patch);
    patchBias = parameter("patches_bias", Parameter.Type.BIAS, width);
    addLayers();
    norm = norm("norm");
    addHead(() -> {
      throw new IllegalStateException("an image has no tokens of a vocabulary");
    });
  }

  @Override
  NDList forward(NDList inputs, Pass pass) {
    NDArray states = states(inputs.head(), embedded(inputs.head(), pass), pass, Shared.NOTHING);
    return outputs(norm.of(states, pass), pass);
  }

  private NDArray embedded(NDArray pixels, Pass pass) {
    Shape shape = pixels.getShape();
    if (shape.dimension() != 4 || !shape.slice(1).equals(image)) {
      throw new MisuseException("images must be of shape " + image + " (was " + shape + ")");
    }
    NDArray kernels = pass.value(patches);
    NDArray cut =
        Conv2d.conv2d(
                Attention.cast(pixels, kernels),
                kernels,
                pass.value(patchBias),
                new Shape(patch, patch))
            .singletonOrThrow();
    long batch = shape.get(0);
    NDArray first = pass.value(classToken);
    long width = first.getShape().get(2);
    NDArray tokens = cut.reshape(batch, width, count).transpose(0, 2, 1);
    return NDArrays.concat(new NDList(first.broadcast(batch, 1, width), tokens), 1)
        .add(pass.value(positions));
  }

  @Override
  List<Shape> outputShapes(Shape input) {
    return headShapes(new Shape(input.get(0), count + 1));
  }
}
