// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.convolutional.Conv2d;
import dev.gantry.core.MisuseException;
import dev.gantry.models.internal.blocks.Description.Norms;
import dev.gantry.models.internal.blocks.Description.Place;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// ConvNeXt: stages of layers that each look at a neighbourhood of one channel, then at all channels of one place.
///
/// Input: `pixel_values`, `[batch, channels, height, width]`. Output: with labels the `logits` `[batch, labels]`; without,
/// the last feature map, and the norm of its mean over each map, `[batch, filters]`.
public final class ConvNextBlock extends NamedBlock {
  /// The sizes of a ConvNeXt.
  ///
  /// @param patch the side of what the first convolution makes one place of
  /// @param epsilon of the last norm
  /// @param scaled whether each channel of a layer's result has a factor
  /// @param labels how many classes it tells apart; 0 for no head
  public record Config(
      int channels,
      int patch,
      List<Integer> filters,
      List<Integer> depths,
      UnaryOperator<NDArray> activation,
      double epsilon,
      boolean scaled,
      int labels)
      implements Design {
    @Override
    public Block newBlock() {
      return new ConvNextBlock(this);
    }
  }

  private static final Norms INNER = new Norms(Place.BEFORE, false, 1e-6, true, false);
  private static final Shape ONE = new Shape(1, 1);

  private record Convolution(Parameter weight, Parameter bias) {
    NDArray of(NDArray x, Pass pass, int stride, int padding, int groups) {
      return Conv2d.conv2d(
              x,
              pass.value(weight),
              pass.value(bias),
              new Shape(stride, stride),
              new Shape(padding, padding),
              ONE,
              groups)
          .singletonOrThrow();
    }
  }

  private record Layer(
      Convolution depth, Norm norm, Dense up, Dense down, @Nullable Parameter scale) {}

  /// @param shrink halves a map; null in the first stage, as its norm
  private record Stage(@Nullable Norm norm, @Nullable Convolution shrink, List<Layer> layers) {}

  private final Config config;
  private final Convolution stem;
  private final Norm stemNorm;
  private final List<Stage> stages = new ArrayList<>();
  private final Norm norm;
  private final @Nullable Dense labels;

  public ConvNextBlock(Config config) {
    this.config = config;
    List<Integer> filters = config.filters();
    int patch = config.patch();
    stem = convolution("stem", filters.getFirst(), config.channels(), patch);
    stemNorm = norm("stemNorm", filters.getFirst(), INNER);
    for (int i = 0; i < filters.size(); i++) {
      String name = "stage" + i + "_";
      List<Layer> layers = new ArrayList<>();
      Norm before = i == 0 ? null : norm(name + "norm", filters.get(i - 1), INNER);
      Convolution shrink =
          i == 0 ? null : convolution(name + "shrink", filters.get(i), filters.get(i - 1), 2);
      for (int j = 0; j < config.depths().get(i); j++) {
        layers.add(layer(name + "layer" + j + "_", filters.get(i)));
      }
      stages.add(new Stage(before, shrink, layers));
    }
    int last = filters.getLast();
    norm = norm("norm", last, new Norms(Place.BEFORE, false, config.epsilon(), true, false));
    labels = config.labels() == 0 ? null : dense("labels", config.labels(), last, true);
  }

  private Layer layer(String name, int width) {
    return new Layer(
        convolution(name + "depth", width, 1, 7),
        norm(name + "norm", width, INNER),
        dense(name + "up", 4L * width, width, true),
        dense(name + "down", width, 4L * width, true),
        config.scaled() ? parameter(name + "scale", Parameter.Type.WEIGHT, width) : null);
  }

  private Convolution convolution(String name, int outputs, int inputs, int size) {
    return new Convolution(
        parameter(name + "_weight", Parameter.Type.WEIGHT, outputs, inputs, size, size),
        parameter(name + "_bias", Parameter.Type.BIAS, outputs));
  }

  private Norm norm(String name, int width, Norms kind) {
    return new Norm(
        parameter(name + "_gamma", Parameter.Type.GAMMA, width),
        parameter(name + "_beta", Parameter.Type.BETA, width),
        kind);
  }

  @Override
  public OptionalDouble rmsEpsilon() {
    return OptionalDouble.empty();
  }

  @Override
  public NDList forward(NDList inputs, Pass pass) {
    NDArray pixels = inputs.head();
    Shape shape = pixels.getShape();
    if (shape.dimension() != 4 || shape.get(1) != config.channels()) {
      throw new MisuseException(
          "images must be of shape (batch, %s, height, width) (was %s)"
              .formatted(config.channels(), shape));
    }
    NDArray first = Attention.cast(pixels, pass.value(stem.weight()));
    NDArray map = normed(stemNorm, stem.of(first, pass, config.patch(), 0, 1), pass);
    for (Stage stage : stages) {
      if (stage.norm() != null && stage.shrink() != null) {
        map = stage.shrink().of(normed(stage.norm(), map, pass), pass, 2, 0, 1);
      }
      for (Layer layer : stage.layers()) {
        NDArray before = map;
        map = step(before, () -> before.add(layer(before, layer, pass)));
      }
    }
    NDArray mean = map.reshape(shape.get(0), config.filters().getLast(), -1).mean(new int[] {2});
    NDArray pooled = norm.of(mean, pass);
    return labels == null
        ? named(List.of("last_hidden_state", "pooler_output"), new NDList(map, pooled))
        : named(List.of("logits"), new NDList(labels.of(pooled, pass)));
  }

  private NDArray layer(NDArray map, Layer layer, Pass pass) {
    int width = Math.toIntExact(map.getShape().get(1));
    NDArray places = layer.depth().of(map, pass, 1, 3, width).transpose(0, 2, 3, 1);
    NDArray inner = layer.up().of(layer.norm().of(places, pass), pass);
    NDArray result = layer.down().of(config.activation().apply(inner), pass);
    NDArray scaled = layer.scale() == null ? result : result.mul(pass.value(layer.scale()));
    return scaled.transpose(0, 3, 1, 2);
  }

  /// Normalizes the channels of each place.
  private static NDArray normed(Norm norm, NDArray map, Pass pass) {
    return norm.of(map.transpose(0, 2, 3, 1), pass).transpose(0, 3, 1, 2);
  }

  @Override
  public List<Shape> outputShapes(Shape input) {
    long batch = input.get(0);
    long last = config.filters().getLast();
    if (labels != null) {
      return List.of(new Shape(batch, config.labels()));
    }
    long shrunk = 1L << (config.filters().size() - 1);
    return List.of(
        new Shape(
            batch,
            last,
            input.get(2) / config.patch() / shrunk,
            input.get(3) / config.patch() / shrunk),
        new Shape(batch, last));
  }
}
