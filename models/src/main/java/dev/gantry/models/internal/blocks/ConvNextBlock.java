// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import dev.gantry.models.internal.blocks.Description.Norms;
import dev.gantry.models.internal.blocks.Description.Place;
import java.util.List;
import java.util.function.UnaryOperator;

/// ConvNeXt. Each layer first convolves the neighbourhood of each position within one channel,
/// then combines all channels of one position. The pooled output is the norm of the mean of each
/// map, `[batch, filters]`.
public final class ConvNextBlock extends StagedBlock {
  /// The sizes of a ConvNeXt.
  ///
  /// @param patch the side length in pixels of the square that the first convolution turns into
  ///     one position
  /// @param epsilon the epsilon of the last norm
  /// @param scaled whether each channel of a layer's result has a learned factor
  /// @param labels the number of classes; 0 for no head
  public record Config(
      int channels,
      int patch,
      List<Integer> filters,
      List<Integer> depths,
      UnaryOperator<NDArray> activation,
      double epsilon,
      boolean scaled,
      int labels)
      implements Sizes {
    @Override
    public Block newBlock() {
      return new ConvNextBlock(this);
    }
  }

  private final Config config;
  private final Norm norm;

  public ConvNextBlock(Config config) {
    super(config);
    this.config = config;
    int inputs = config.channels();
    for (int stage = 0; stage < config.filters().size(); stage++) {
      String name = "stage" + stage + "_";
      int width = config.filters().get(stage);
      if (stage == 0) {
        Window patch = new Window(config.patch(), config.patch(), 0);
        Part stem = convolution("stem", width, inputs, patch, 1, true);
        Part normed = normed(norm("stemNorm", width, 1e-6));
        add(patch, (x, pass) -> normed.of(stem.of(x, pass), pass));
      } else {
        Window half = new Window(2, 2, 0);
        Part normed = normed(norm(name + "norm", inputs, 1e-6));
        Part shrink = convolution(name + "shrink", width, inputs, half, 1, true);
        add(half, (x, pass) -> shrink.of(normed.of(x, pass), pass));
      }
      for (int i = 0; i < config.depths().get(stage); i++) {
        Part layer = layer(name + "layer" + i + "_", width);
        add(null, (x, pass) -> x.add(layer.of(x, pass)));
      }
      inputs = width;
    }
    norm = norm("norm", inputs, config.epsilon());
    addHead();
  }

  private Part layer(String name, int width) {
    Part depth = convolution(name + "depth", width, 1, new Window(7, 1, 3), width, true);
    Norm norm = norm(name + "norm", width, 1e-6);
    Dense up = dense(name + "up", 4L * width, width, true);
    Dense down = dense(name + "down", width, 4L * width, true);
    Parameter scale =
        config.scaled() ? parameter(name + "scale", Parameter.Type.WEIGHT, width) : null;
    return (map, pass) -> {
      NDArray places = depth.of(map, pass).transpose(0, 2, 3, 1);
      NDArray inner = config.activation().apply(up.of(norm.of(places, pass), pass));
      NDArray result = down.of(inner, pass);
      NDArray scaled = scale == null ? result : result.mul(pass.value(scale));
      return scaled.transpose(0, 3, 1, 2);
    };
  }

  private Norm norm(String name, int width, double epsilon) {
    return norm(name, width, new Norms(Place.BEFORE, false, epsilon, true, false));
  }

  /// Normalises over the channels of each position.
  private static Part normed(Norm norm) {
    return (map, pass) -> norm.of(map.transpose(0, 2, 3, 1), pass).transpose(0, 3, 1, 2);
  }

  @Override
  NDArray pooled(NDArray map, Pass pass) {
    Shape shape = map.getShape();
    return norm.of(map.reshape(shape.get(0), shape.get(1), -1).mean(new int[] {2}), pass);
  }

  @Override
  Shape pooledShape(long batch) {
    return new Shape(batch, config.filters().getLast());
  }
}
