// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.convert.Conversion;
import dev.gantry.core.internal.convert.ScaleGrid;
import dev.gantry.core.internal.convert.ScaleShapes;
import dev.gantry.formats.spi.StoredTensor;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.function.Supplier;
import java.util.stream.Stream;

/// Finds the quantised tensors of some weights that have scales. For a tensor `NAME`, that is the tensor
/// `NAME_scale_inv` or `NAME_scale`; both are factors of the stored values. Thread-safe.
public final class Scales {
  /// Finds no scales: for weights that are loaded as they are.
  public static final Scales NONE = new Scales(Map.of(), Map.of(), Optional::empty);

  private final Map<String, StoredTensor> byTensor;
  private final Map<String, String> tensors;
  private final Supplier<Optional<ScaleShapes.Block>> blockSize;
  private Optional<ScaleShapes.Block> known = Optional.empty();
  private boolean asked;

  private Scales(
      Map<String, StoredTensor> byTensor,
      Map<String, String> tensors,
      Supplier<Optional<ScaleShapes.Block>> blockSize) {
    this.byTensor = byTensor;
    this.tensors = tensors;
    this.blockSize = blockSize;
  }

  /// @param blockSize rows and columns of a block, where the model's configuration says them; asked
  ///     when scales are used
  public static Scales of(
      SequencedMap<String, StoredTensor> tensors, Supplier<Optional<ScaleShapes.Block>> blockSize) {
    Map<String, StoredTensor> byTensor = new HashMap<>();
    Map<String, String> names = new HashMap<>();
    for (StoredTensor tensor : tensors.values()) {
      if (Conversion.SOURCES.contains(tensor.dtype())) {
        Stream.of("_scale_inv", "_scale")
            .map(suffix -> tensors.get(tensor.name() + suffix))
            .filter(Objects::nonNull)
            .findFirst()
            .ifPresent(scale -> {
              byTensor.put(tensor.name(), scale);
              names.put(scale.name(), tensor.name());
            });
      }
    }
    return new Scales(byTensor, names, blockSize);
  }

  public boolean has(String tensor) {
    return byTensor.containsKey(tensor);
  }

  /// The scales of a tensor.
  Optional<StoredTensor> scalesOf(String tensor) {
    return Optional.ofNullable(byTensor.get(tensor));
  }

  /// The tensor that these are scales of.
  public Optional<String> tensorOf(String scales) {
    return Optional.ofNullable(tensors.get(scales));
  }

  /// Whether these are scales of a tensor that is cast: then they are no array of their own.
  boolean areOfCast(String name, TypePolicy types) {
    return tensorOf(name).flatMap(types::of).isPresent();
  }

  private synchronized Optional<ScaleShapes.Block> blockSize() {
    if (!asked) {
      known = blockSize.get();
      asked = true;
    }
    return known;
  }

  /// Says which element of a tensor with scales has which scale.
  ///
  /// @throws MisuseException if the scales do not fit the tensor
  ScaleGrid grid(StoredTensor tensor) {
    StoredTensor scale = scalesOf(tensor.name()).orElseThrow();
    return switch (ScaleShapes.fit(tensor.shape(), scale.shape(), blockSize().orElse(null))) {
      case ScaleShapes.Fit.Found(ScaleGrid grid) -> grid;
      case ScaleShapes.Fit.None(String reason) ->
          throw new MisuseException(
              "tensor '%s' cannot be cast with '%s': %s"
                  .formatted(tensor.name(), scale.name(), reason));
    };
  }
}
