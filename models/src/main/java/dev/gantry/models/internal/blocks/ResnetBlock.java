// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.convolutional.Conv2d;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.nn.pooling.Pool;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;
import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// ResNet of version 1.5: the stride of a bottleneck is in its 3 × 3 convolution, unless you ask for
/// the first one as in version 1.
///
/// Input: `pixel_values`, `[batch, channels, height, width]`. Output: with labels the `logits`
/// `[batch, labels]`; without, the last feature map `[batch, filters, …]` and its mean over each
/// map, `[batch, filters, 1, 1]`.
///
/// The parts are DJL's own blocks. In training their batch normalization uses the batch's
/// statistics, as DJL's does.
public final class ResnetBlock extends AbstractBlock {
  /// The sizes of a ResNet.
  ///
  /// @param stem filters of the first convolution
  /// @param filters of each stage
  /// @param depths layers of each stage
  /// @param bottleneck whether a layer has three convolutions, the middle one with a quarter of the
  ///     filters; else two
  /// @param strideFirst whether a bottleneck's stride is in its first convolution; else in the
  ///     middle
  /// @param shrinkFirst whether the first stage halves the image, as the others do
  /// @param activation behind the first convolution and behind each layer; within a layer it is ReLU,
  ///     as in the library that writes the hub's files
  /// @param labels how many classes it tells apart; 0 for no head
  public record Config(
      int channels,
      int stem,
      List<Integer> filters,
      List<Integer> depths,
      boolean bottleneck,
      boolean strideFirst,
      boolean shrinkFirst,
      UnaryOperator<NDArray> activation,
      int labels)
      implements Design {
    @Override
    public Block newBlock() {
      return new ResnetBlock(this);
    }
  }

  /// A convolution and its batch normalization.
  private record Convolution(Conv2d weights, BatchNorm norm) {
    NDArray of(NDArray x, ParameterStore store, boolean training) {
      NDList mapped = weights.forward(store, new NDList(x), training);
      return norm.forward(store, mapped, training).singletonOrThrow();
    }
  }

  /// @param shortcut none where the input is added as it is
  private record Layer(List<Convolution> convolutions, @Nullable Convolution shortcut) {}

  private final Config config;
  private final Convolution stem;
  private final List<Layer> layers = new ArrayList<>();
  private final @Nullable Linear labels;

  /// A block without values: a load or [#initialize] gives them.
  public ResnetBlock(Config config) {
    this.config = config;
    stem = convolution("stem", config.stem(), 7, 2);
    int inputs = config.stem();
    for (int stage = 0; stage < config.filters().size(); stage++) {
      int filters = config.filters().get(stage);
      for (int i = 0; i < config.depths().get(stage); i++) {
        int stride = i == 0 && (stage > 0 || config.shrinkFirst()) ? 2 : 1;
        String name = "stage" + stage + "_layer" + i + "_";
        Convolution shortcut =
            inputs == filters && stride == 1
                ? null
                : convolution(name + "shortcut", filters, 1, stride);
        layers.add(new Layer(convolutions(name + "part", filters, stride), shortcut));
        inputs = filters;
      }
    }
    labels = config.labels() == 0 ? null : Linear.builder().setUnits(config.labels()).build();
    if (labels != null) {
      children.add("labels", labels);
    }
  }

  private List<Convolution> convolutions(String name, int filters, int stride) {
    if (!config.bottleneck()) {
      return List.of(
          convolution(name + 0, filters, 3, stride), convolution(name + 1, filters, 3, 1));
    }
    return List.of(
        convolution(name + 0, filters / 4, 1, config.strideFirst() ? stride : 1),
        convolution(name + 1, filters / 4, 3, config.strideFirst() ? 1 : stride),
        convolution(name + 2, filters, 1, 1));
  }

  private Convolution convolution(String name, int filters, int kernel, int stride) {
    Conv2d weights =
        Conv2d.builder()
            .setKernelShape(new Shape(kernel, kernel))
            .setFilters(filters)
            .optStride(new Shape(stride, stride))
            .optPadding(new Shape(kernel / 2, kernel / 2))
            .optBias(false)
            .build();
    BatchNorm norm = BatchNorm.builder().optEpsilon(1e-5f).build();
    children.add(name + "_conv", weights);
    children.add(name + "_norm", norm);
    return new Convolution(weights, norm);
  }

  @Override
  protected NDList forwardInternal(
      ParameterStore store,
      NDList inputs,
      boolean training,
      @Nullable PairList<String, Object> params) {
    NDArray pixels = inputs.head();
    return NamedBlock.kept(pixels.getManager(), () -> forward(pixels, store, training));
  }

  private NDList forward(NDArray pixels, ParameterStore store, boolean training) {
    Shape shape = pixels.getShape();
    if (shape.dimension() != 4 || shape.get(1) != config.channels()) {
      throw new MisuseException(
          "images must be of shape (batch, %s, height, width) (was %s)"
              .formatted(config.channels(), shape));
    }
    NDArray kernels =
        store.getValue(
            stem.weights().getDirectParameters().get("weight"), pixels.getDevice(), training);
    NDArray first = activated(stem.of(Attention.cast(pixels, kernels), store, training));
    NDArray map = Pool.maxPool2d(first, new Shape(3, 3), new Shape(2, 2), new Shape(1, 1), false);
    for (Layer layer : layers) {
      NDArray before = map;
      map = NamedBlock.step(before, () -> layer(before, layer, store, training));
    }
    NDArray mean = Pool.globalAvgPool2d(map);
    return labels == null
        ? NamedBlock.named(
            List.of("last_hidden_state", "pooler_output"),
            new NDList(map, mean.reshape(mean.getShape().addAll(new Shape(1, 1)))))
        : NamedBlock.named(List.of("logits"), labels.forward(store, new NDList(mean), training));
  }

  private NDArray layer(NDArray x, Layer layer, ParameterStore store, boolean training) {
    List<Convolution> convolutions = layer.convolutions();
    NDArray y = convolutions.getFirst().of(x, store, training);
    for (Convolution next : convolutions.subList(1, convolutions.size())) {
      y = next.of(Activation.relu(y), store, training);
    }
    NDArray shortcut = layer.shortcut() == null ? x : layer.shortcut().of(x, store, training);
    return activated(y.add(shortcut));
  }

  private NDArray activated(NDArray map) {
    return config.activation().apply(map);
  }

  @Override
  protected void initializeChildBlocks(NDManager manager, DataType type, Shape... inputShapes) {
    Shape map = shrunk(initialized(stem, manager, type, inputShapes[0]), config.stem());
    for (Layer layer : layers) {
      if (layer.shortcut() != null) {
        initialized(layer.shortcut(), manager, type, map);
      }
      for (Convolution convolution : layer.convolutions()) {
        map = initialized(convolution, manager, type, map);
      }
    }
    if (labels != null) {
      labels.initialize(manager, type, map.slice(0, 2));
    }
  }

  private static Shape initialized(
      Convolution convolution, NDManager manager, DataType type, Shape input) {
    convolution.weights().initialize(manager, type, input);
    Shape output = convolution.weights().getOutputShapes(new Shape[] {input})[0];
    convolution.norm().initialize(manager, type, output);
    return output;
  }

  @Override
  public Shape[] getOutputShapes(Shape[] inputShapes) {
    Shape map = shrunk(shrunk(inputShapes[0], config.stem()), config.stem());
    for (int stage = 0; stage < config.filters().size(); stage++) {
      int filters = config.filters().get(stage);
      boolean smaller = stage > 0 || config.shrinkFirst();
      map = smaller ? shrunk(map, filters) : new Shape(map.get(0), filters, map.get(2), map.get(3));
    }
    long batch = map.get(0);
    return labels == null
        ? new Shape[] {map, new Shape(batch, map.get(1), 1, 1)}
        : new Shape[] {new Shape(batch, config.labels())};
  }

  /// The shape that a convolution or pooling of stride two makes of a map, with the padding that all kernels
  /// here have.
  private static Shape shrunk(Shape map, int filters) {
    return new Shape(map.get(0), filters, (map.get(2) + 1) / 2, (map.get(3) + 1) / 2);
  }
}
