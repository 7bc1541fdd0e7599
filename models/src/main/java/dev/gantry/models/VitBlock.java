// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.nn.convolutional.Conv2d;
import dev.gantry.core.MisuseException;
import java.util.List;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// ViT: an image's patches as tokens of an encoder, with a class token before them.
///
/// Input: `pixel_values`, `[batch, channels, height, width]`, of the size that the model was made
/// for. Output: with labels the `logits` `[batch, labels]`; without, the last hidden state `[batch,
/// patches + 1, width]`, and with a pooler `tanh` of a dense layer of the class token's, `[batch,
/// pooled]`. There is no dropout, also in training.
public final class VitBlock extends TransformerBlock {
  /// The sizes of a ViT.
  ///
  /// @param height in pixels, as `breadth`
  /// @param patchHeight in pixels, as `patchBreadth`
  /// @param hidden the width of the feed-forward part
  /// @param bias whether query, key and value have one
  /// @param labels how many classes it tells apart; 0 for no head
  /// @param pooled the width of the pooler; 0 for none
  public record Config(
      int channels,
      int height,
      int breadth,
      int patchHeight,
      int patchBreadth,
      int width,
      int hidden,
      int layers,
      int heads,
      double epsilon,
      UnaryOperator<NDArray> activation,
      boolean bias,
      int labels,
      int pooled) {
    /// @throws MisuseException if `width` is no multiple of `heads`, or a patch is larger than the
    ///     image
    public Config {
      requireMultiple(width, heads);
      if (patchHeight > height || patchBreadth > breadth) {
        throw new MisuseException(
            "a patch must be no larger than the image (was %d × %d of %d × %d)"
                .formatted(patchHeight, patchBreadth, height, breadth));
      }
    }

    long patches() {
      return (long) (height / patchHeight) * (breadth / patchBreadth);
    }
  }

  private final Config config;
  private final Parameter classToken;
  private final Parameter positions;
  private final Parameter patches;
  private final Parameter patchBias;
  private final Norm norm;
  private final @Nullable Dense labels;
  private final @Nullable Dense pooler;

  /// A block without values: a load or [#initialize] gives them.
  @SuppressWarnings("this-escape")
  public VitBlock(Config config) {
    super(layers(config));
    this.config = config;
    int width = config.width();
    classToken = parameter("classToken", Parameter.Type.WEIGHT, 1, 1, width);
    positions = parameter("positions", Parameter.Type.WEIGHT, 1, config.patches() + 1, width);
    patches =
        parameter(
            "patches_weight",
            Parameter.Type.WEIGHT,
            width,
            config.channels(),
            config.patchHeight(),
            config.patchBreadth());
    patchBias = parameter("patches_bias", Parameter.Type.BIAS, width);
    addLayers();
    norm = norm("norm");
    labels = config.labels() == 0 ? null : dense("labels", config.labels(), width, true);
    pooler = config.pooled() == 0 ? null : dense("pooler", config.pooled(), width, true);
  }

  private static Layers layers(Config config) {
    Layers layers =
        Layers.of(
            config.layers(),
            config.width(),
            config.hidden(),
            config.heads(),
            config.epsilon(),
            config.activation());
    return config.bias() ? layers : layers.without(Trait.ATTENTION_BIAS);
  }

  @Override
  NDList forward(NDList inputs, Pass pass) {
    NDArray states = states(inputs.head(), embedded(inputs.head(), pass), pass, Shared.NOTHING);
    NDArray last = norm.of(states, pass);
    NDArray first = last.get(new NDIndex(":, 0"));
    if (labels != null) {
      return named(LOGITS, new NDList(labels.of(first, pass)));
    }
    return named(
        STATES,
        pooler == null ? new NDList(last) : new NDList(last, pooler.of(first, pass).tanh()));
  }

  private NDArray embedded(NDArray pixels, Pass pass) {
    Shape shape = pixels.getShape();
    Shape wanted = new Shape(config.channels(), config.height(), config.breadth());
    if (shape.dimension() != 4 || !shape.slice(1).equals(wanted)) {
      throw new MisuseException("images must be of shape " + wanted + " (was " + shape + ")");
    }
    NDArray kernels = pass.value(patches);
    NDArray cut =
        Conv2d.conv2d(
                Attention.cast(pixels, kernels),
                kernels,
                pass.value(patchBias),
                new Shape(config.patchHeight(), config.patchBreadth()))
            .singletonOrThrow();
    long batch = shape.get(0);
    NDArray tokens = cut.reshape(batch, config.width(), config.patches()).transpose(0, 2, 1);
    NDArray first = pass.value(classToken).broadcast(batch, 1, config.width());
    return NDArrays.concat(new NDList(first, tokens), 1).add(pass.value(positions));
  }

  @Override
  List<Shape> outputShapes(Shape input) {
    long batch = input.get(0);
    if (labels != null) {
      return List.of(new Shape(batch, config.labels()));
    }
    Shape states = new Shape(batch, config.patches() + 1, config.width());
    return pooler == null ? List.of(states) : List.of(states, new Shape(batch, config.pooled()));
  }
}
