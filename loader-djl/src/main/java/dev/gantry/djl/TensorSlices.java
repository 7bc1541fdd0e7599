// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.weights.NamePattern;
import dev.gantry.formats.internal.weights.TensorSlice;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/// Which part of each tensor a rank gets where several share a model (tensor parallelism): rules by name
/// say along which axis a tensor is cut into equal parts. Tensors that no rule names are whole on each
/// rank. Immutable.
public final class TensorSlices {
  private record Rule(NamePattern tensors, TensorSlice slice) {}

  private final List<Rule> rules;

  private TensorSlices(List<Rule> rules) {
    this.rules = List.copyOf(rules);
  }

  public static Builder builder() {
    return new Builder();
  }

  /// The rank's tensors: those of rules cut, the others as they are, in their order.
  ///
  /// @throws MisuseException if a rule names no tensor, or a tensor cannot be cut so
  SequencedMap<String, StoredTensor> of(
      SequencedMap<String, StoredTensor> tensors, int rank, int world) {
    MisuseException.requireRange("world", world, 1, Integer.MAX_VALUE);
    MisuseException.requireRange("rank", rank, 0, world - 1);
    boolean[] used = new boolean[rules.size()];
    SequencedMap<String, StoredTensor> slices = LinkedHashMap.newLinkedHashMap(tensors.size());
    tensors.forEach((name, tensor) -> {
      StoredTensor part = tensor;
      for (int i = 0; i < rules.size(); i++) {
        if (rules.get(i).tensors().matches(name)) {
          used[i] = true;
          part = rules.get(i).slice().of(tensor, rank, world);
          break;
        }
      }
      slices.put(name, part);
    });
    for (int i = 0; i < used.length; i++) {
      if (!used[i]) {
        throw new MisuseException(
            "slices along '"
                + rules.get(i).tensors()
                + "' are wanted, and no tensor is left with such a name");
      }
    }
    return Collections.unmodifiableSequencedMap(slices);
  }

  /// Makes [TensorSlices]. For one thread.
  public static final class Builder {
    private final List<Rule> rules = new ArrayList<>();

    private Builder() {}

    /// Cuts the tensors of these names along an axis; the first rule that matches a tensor decides.
    ///
    /// A fused tensor has several parts along the axis, of which each rank gets its piece of each, one
    /// behind the other: `along("{layer*}.qkv.weight", 0, 1, 1, 1)` for three of one size,
    /// `along("{layer*}.qkv.weight", 0, 4, 1, 1)` where the first is four times as large.
    ///
    /// @param tensors a pattern as in [ParameterNames], such as `{layer*}.up_proj.weight`
    /// @param axis 0 for the first
    /// @param parts sizes of a fused tensor's parts, in proportion; none for a tensor that is one
    public Builder along(String tensors, int axis, int... parts) {
      MisuseException.requireGiven("tensors of along", tensors);
      MisuseException.requireRange("axis of along", axis, 0, Integer.MAX_VALUE);
      for (int part : parts) {
        MisuseException.requireRange("parts of along", part, 1, Integer.MAX_VALUE);
      }
      List<Integer> sizes = parts.length == 0 ? List.of(1) : Arrays.stream(parts).boxed().toList();
      rules.add(new Rule(new NamePattern(tensors), new TensorSlice(axis, sizes)));
      return this;
    }

    public TensorSlices build() {
      return new TensorSlices(rules);
    }
  }
}
