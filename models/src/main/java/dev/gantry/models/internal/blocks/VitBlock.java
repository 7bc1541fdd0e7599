// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import dev.gantry.core.MisuseException;
import dev.gantry.models.internal.blocks.Description.Patches;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A vision transformer: an encoder of an image's patches. A class token comes before the patches,
/// and a distillation token if the model was trained by distillation.
///
/// Input: `pixel_values`, `[batch, channels, size, size]`.
public final class VitBlock extends TransformerBlock {
  private final Patches sizes;
  private final @Nullable Parameter firstTokens;
  private final Parameter positions;
  private final Part patches;
  private final Part norm;

  public VitBlock(Description description, Patches sizes) {
    super(description);
    this.sizes = sizes;
    int width = description.width();
    int patch = sizes.patch();
    Parameter.Type weight = Parameter.Type.WEIGHT;
    firstTokens =
        sizes.first() == 0 ? null : parameter("classToken", weight, 1, sizes.first(), width);
    positions = parameter("positions", weight, 1, sizes.count() + sizes.first(), width);
    Window window = new Window(patch, patch, 0);
    patches = convolution("patches", width, sizes.channels(), window, 1, sizes.bias());
    norm = sizes.norm() ? norm("embeddingNorm", width) : Part.SAME;
    addLayers(null);
  }

  @Override
  public NDList forward(NDList inputs, Pass pass) {
    NDArray embedded = embedded(inputs.head(), pass);
    NDArray states = states(inputs.head(), embedded, pass, Shared.unmasked(embedded));
    return outputs(states, new TextInputs(inputs.head(), null, null), pass);
  }

  private NDArray embedded(NDArray pixels, Pass pass) {
    Shape shape = pixels.getShape();
    requireFits(shape);
    NDArray cut = patches.of(pixels, pass);
    long batch = shape.get(0);
    long width = description().width();
    NDArray tokens = cut.reshape(batch, width, -1).transpose(0, 2, 1);
    if (firstTokens != null) {
      NDArray first = pass.value(firstTokens).broadcast(batch, sizes.first(), width);
      tokens = NDArrays.concat(new NDList(first, tokens), 1);
    }
    return norm.of(tokens.add(placed(pass.value(positions), cut.getShape())), pass);
  }

  private void requireFits(Shape shape) {
    Shape image = new Shape(sizes.channels(), sizes.size(), sizes.size());
    boolean fits =
        shape.dimension() == 4
            && (sizes.anySize()
                ? shape.get(1) == sizes.channels()
                    && Math.min(shape.get(2), shape.get(3)) >= sizes.patch()
                : shape.slice(1).equals(image));
    if (!fits) {
      String wanted =
          sizes.anySize()
              ? "(%d, height, width), a patch of %d or more"
                  .formatted(sizes.channels(), sizes.patch())
              : image.toString();
      throw new MisuseException("images must be of shape " + wanted + " (was " + shape + ")");
    }
  }

  /// Returns the positions of an image's patches. They are interpolated if the image has another
  /// number of patches than the learned positions.
  ///
  /// @param cut `[batch, width, rows, columns]`
  private NDArray placed(NDArray learned, Shape cut) {
    long side = sizes.size() / sizes.patch();
    if (cut.get(2) == side && cut.get(3) == side) {
      return learned;
    }
    long width = cut.get(1);
    NDArray own = learned.get(new NDIndex(":, :{}", sizes.first()));
    NDArray grid =
        learned
            .get(new NDIndex(":, {}:", sizes.first()))
            .toType(DataType.FLOAT32, false)
            .reshape(side, side * width);
    NDArray rows = cubic(side, cut.get(2), learned.getManager()).matMul(grid);
    NDArray both =
        cubic(side, cut.get(3), learned.getManager())
            .matMul(
                rows.reshape(cut.get(2), side, width)
                    .transpose(1, 0, 2)
                    .reshape(side, cut.get(2) * width))
            .reshape(cut.get(3), cut.get(2), width)
            .transpose(1, 0, 2)
            .reshape(1, cut.get(2) * cut.get(3), width);
    return NDArrays.concat(new NDList(own, Attention.cast(both, own)), 1);
  }

  /// Returns the weights of cubic interpolation, `[to, from]`: each of `to` values is a weighted
  /// sum of `from` values. Values at the edges are repeated beyond them.
  private static NDArray cubic(long from, long to, NDManager manager) {
    float[] shares = new float[Math.toIntExact(to * from)];
    for (int i = 0; i < to; i++) {
      double place = (i + 0.5) * from / to - 0.5;
      for (int j = -1; j <= 2; j++) {
        double near = Math.floor(place) + j;
        int value = Math.clamp((long) near, 0, Math.toIntExact(from - 1));
        shares[Math.toIntExact(i * from) + value] += (float) share(Math.abs(place - near));
      }
    }
    return manager.create(shares, new Shape(to, from));
  }

  /// The reference's cubic kernel, whose slope at 1 is -0.75.
  private static double share(double distance) {
    double slope = -0.75;
    return distance <= 1
        ? ((slope + 2) * distance - (slope + 3)) * distance * distance + 1
        : distance < 2 ? ((distance - 5) * distance + 8) * distance * slope - 4 * slope : 0;
  }

  @Override
  public List<Shape> outputShapes(Shape input) {
    long patches = input.get(2) / sizes.patch() * (input.get(3) / sizes.patch());
    return outputShapes(input, new Shape(input.get(0), patches + sizes.first()));
  }
}
