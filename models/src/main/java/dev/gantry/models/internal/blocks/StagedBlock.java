// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/// A convolutional model of images, in stages. Each stage has smaller maps and more channels than
/// the previous one.
///
/// Input: `pixel_values`, `[batch, channels, height, width]`. Output: if there are labels, the
/// `logits`, `[batch, labels]`; otherwise the last feature map, `[batch, filters, …]`, and the
/// pooled values of each map.
public abstract class StagedBlock extends NamedBlock {
  /// The sizes that all such models share.
  interface Sizes extends Design {
    /// Returns how many channels an image has.
    int channels();

    /// Returns how many channels the maps of each stage have.
    List<Integer> filters();

    /// Returns the number of classes; 0 for no head.
    int labels();
  }

  private final Sizes sizes;
  private final List<Part> parts = new ArrayList<>();
  private final List<Window> windows = new ArrayList<>();
  private @Nullable Dense head;

  StagedBlock(Sizes sizes) {
    this.sizes = sizes;
  }

  /// Appends a part that every map goes through.
  ///
  /// @param window the window that makes the map smaller; null if the part keeps its size
  final void add(@Nullable Window window, Part part) {
    parts.add(part);
    if (window != null) {
      windows.add(window);
    }
  }

  /// Appends the layer that scores the labels. Its parameters are the last ones.
  final void addHead() {
    head =
        sizes.labels() == 0
            ? null
            : dense("labels", sizes.labels(), sizes.filters().getLast(), true);
  }

  /// Pools the last map to `[batch, width]`.
  abstract NDArray pooled(NDArray map, Pass pass);

  /// Returns the shape of the pooled values as an output.
  abstract Shape pooledShape(long batch);

  @Override
  public final OptionalDouble rmsEpsilon() {
    return OptionalDouble.empty();
  }

  @Override
  public final NDList forward(NDList inputs, Pass pass) {
    Shape shape = inputs.head().getShape();
    if (shape.dimension() != 4 || shape.get(1) != sizes.channels()) {
      throw new MisuseException(
          "images must be of shape (batch, %s, height, width) (was %s)"
              .formatted(sizes.channels(), shape));
    }
    NDArray map = parts.getFirst().of(inputs.head(), pass);
    for (Part part : parts.subList(1, parts.size())) {
      NDArray before = map;
      map = step(before, () -> part.of(before, pass));
    }
    NDArray pooled = pooled(map, pass);
    return head == null
        ? named(
            List.of("last_hidden_state", "pooler_output"),
            new NDList(map, pooled.reshape(pooledShape(shape.get(0)))))
        : named(List.of("logits"), new NDList(head.of(pooled, pass)));
  }

  @Override
  public final List<Shape> outputShapes(Shape input) {
    long batch = input.get(0);
    if (sizes.labels() > 0) {
      return List.of(new Shape(batch, sizes.labels()));
    }
    long height = input.get(2);
    long across = input.get(3);
    for (Window window : windows) {
      height = window.count(height);
      across = window.count(across);
    }
    return List.of(new Shape(batch, sizes.filters().getLast(), height, across), pooledShape(batch));
  }
}
