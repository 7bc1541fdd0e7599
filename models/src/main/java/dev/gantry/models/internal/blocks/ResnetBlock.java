// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.nn.pooling.Pool;
import java.util.List;
import java.util.function.UnaryOperator;

/// ResNet of version 1.5: the stride of a bottleneck is in its 3 × 3 convolution; with
/// `strideFirst` it is in the first convolution, as in version 1. The pooled output is the mean of
/// each map, `[batch, filters, 1, 1]`.
///
/// In training, batch normalisation uses the batch's statistics, as DJL's does.
public final class ResnetBlock extends StagedBlock {
  /// The sizes of a ResNet.
  ///
  /// @param first the number of filters of the first convolution
  /// @param filters the number of filters of each stage
  /// @param depths the number of layers of each stage
  /// @param bottleneck whether a layer has three convolutions, the middle one with a quarter of
  ///     the filters; otherwise two
  /// @param strideFirst whether a bottleneck's stride is in its first convolution; otherwise in
  ///     the middle one
  /// @param shrinkFirst whether the first stage halves the image, as the other stages do
  /// @param activation the activation after the first convolution and after each layer; within a
  ///     layer it is ReLU, as in the library that writes the hub's files
  /// @param labels the number of classes; 0 for no head
  public record Config(
      int channels,
      int first,
      List<Integer> filters,
      List<Integer> depths,
      boolean bottleneck,
      boolean strideFirst,
      boolean shrinkFirst,
      UnaryOperator<NDArray> activation,
      int labels)
      implements Sizes {
    @Override
    public Block newBlock() {
      return new ResnetBlock(this);
    }
  }

  private final Config config;

  public ResnetBlock(Config config) {
    super(config);
    this.config = config;
    Window start = new Window(7, 2, 3);
    Part stem = normed("stem", config.first(), config.channels(), start);
    add(start, (x, pass) -> config.activation().apply(stem.of(x, pass)));
    add(new Window(3, 2, 1), (x, _) -> Pool.maxPool2d(x, square(3), square(2), square(1), false));
    int inputs = config.first();
    for (int stage = 0; stage < config.filters().size(); stage++) {
      int filters = config.filters().get(stage);
      for (int i = 0; i < config.depths().get(stage); i++) {
        int stride = i == 0 && (stage > 0 || config.shrinkFirst()) ? 2 : 1;
        add(
            new Window(1, stride, 0),
            layer("stage" + stage + "_layer" + i + "_", filters, inputs, stride));
        inputs = filters;
      }
    }
    addHead();
  }

  private Part layer(String name, int filters, int inputs, int stride) {
    Part shortcut =
        inputs == filters && stride == 1
            ? Part.SAME
            : normed(name + "shortcut", filters, inputs, new Window(1, stride, 0));
    List<Part> convolutions = convolutions(name + "part", filters, inputs, stride);
    return (x, pass) -> {
      NDArray y = convolutions.getFirst().of(x, pass);
      for (Part next : convolutions.subList(1, convolutions.size())) {
        y = next.of(Activation.relu(y), pass);
      }
      return config.activation().apply(y.add(shortcut.of(x, pass)));
    };
  }

  private List<Part> convolutions(String name, int filters, int inputs, int stride) {
    if (!config.bottleneck()) {
      return List.of(
          normed(name + 0, filters, inputs, new Window(3, stride, 1)),
          normed(name + 1, filters, filters, new Window(3, 1, 1)));
    }
    int neck = filters / 4;
    int early = config.strideFirst() ? stride : 1;
    return List.of(
        normed(name + 0, neck, inputs, new Window(1, early, 0)),
        normed(name + 1, neck, neck, new Window(3, stride / early, 1)),
        normed(name + 2, filters, neck, new Window(1, 1, 0)));
  }

  /// Makes a convolution with its batch normalisation.
  private Part normed(String name, int outputs, int inputs, Window window) {
    Part convolution = convolution(name + "_conv", outputs, inputs, window, 1, false);
    Parameter gamma = parameter(name + "_norm_gamma", Parameter.Type.GAMMA, outputs);
    Parameter beta = parameter(name + "_norm_beta", Parameter.Type.BETA, outputs);
    Parameter mean = parameter(name + "_norm_runningMean", Parameter.Type.RUNNING_MEAN, outputs);
    Parameter variance = parameter(name + "_norm_runningVar", Parameter.Type.RUNNING_VAR, outputs);
    return (x, pass) ->
        BatchNorm.batchNorm(
                convolution.of(x, pass),
                pass.store().getValue(mean, pass.device(), false),
                pass.store().getValue(variance, pass.device(), false),
                pass.value(gamma),
                pass.value(beta),
                1,
                0.9f,
                1e-5f,
                pass.training())
            .singletonOrThrow();
  }

  @Override
  NDArray pooled(NDArray map, Pass pass) {
    return Pool.globalAvgPool2d(map);
  }

  @Override
  Shape pooledShape(long batch) {
    return new Shape(batch, config.filters().getLast(), 1, 1);
  }
}
