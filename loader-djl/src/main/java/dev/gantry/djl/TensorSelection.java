// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.names.NamePattern;
import dev.gantry.djl.internal.names.Names;
import dev.gantry.formats.internal.weights.TensorSlice;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Predicate;

/// Selects tensors of some weights, as a whole or only some rows of a tensor. Immutable, and as
/// thread-safe as the predicate that it may hold.
public final class TensorSelection {
  private static final TensorSelection ALL = new TensorSelection(Set.of(), _ -> true, Map.of());

  /// Names that must be there.
  private final Set<String> names;

  private final Predicate<TensorInfo> wanted;
  private final Map<String, Rows> rows;

  private record Rows(long from, long to) {}

  private TensorSelection(Set<String> names, Predicate<TensorInfo> wanted, Map<String, Rows> rows) {
    this.names = names;
    this.wanted = wanted;
    this.rows = rows;
  }

  /// Selects all tensors, with all of their rows.
  public static TensorSelection all() {
    return ALL;
  }

  /// Selects the tensors of these names; a load is refused if the weights lack one.
  public static TensorSelection names(Collection<String> names) {
    Set<String> all = Set.copyOf(MisuseException.requireGiven("names", names));
    return new TensorSelection(all, tensor -> all.contains(tensor.name()), Map.of());
  }

  /// Selects the tensors whose names begin with `prefix`; possibly none.
  public static TensorSelection prefix(String prefix) {
    MisuseException.requireGiven("prefix", prefix);
    return matching(tensor -> tensor.name().startsWith(prefix));
  }

  /// Selects the tensors for which `predicate` holds; possibly none.
  public static TensorSelection matching(Predicate<TensorInfo> predicate) {
    return new TensorSelection(
        Set.of(), MisuseException.requireGiven("predicate", predicate), Map.of());
  }

  /// This selection, but of tensor `name`, which must be in it, only rows `from` (inclusive) to
  /// `to` (exclusive) of the first dimension.
  public TensorSelection rows(String name, long from, long to) {
    Map<String, Rows> more = new LinkedHashMap<>(rows);
    more.put(name, new Rows(from, to));
    return new TensorSelection(names, wanted, Collections.unmodifiableMap(more));
  }

  /// The selected ones of `tensors`, in their order there, each cut to the rows that are wanted.
  ///
  /// @throws MisuseException if a name is unknown, with the nearest that are known; if rows are
  ///     asked for of a tensor that is not selected, or that [StoredTensor#rows] cannot give
  SequencedMap<String, StoredTensor> of(SequencedMap<String, StoredTensor> tensors) {
    rows.keySet().forEach(name -> requireKnown(name, tensors));
    names.forEach(name -> requireKnown(name, tensors));
    SequencedMap<String, StoredTensor> selection = new LinkedHashMap<>();
    for (StoredTensor tensor : tensors.values()) {
      if (wanted.test(TensorInfo.of(tensor))) {
        Rows part = rows.get(tensor.name());
        selection.put(tensor.name(), part == null ? tensor : tensor.rows(part.from(), part.to()));
      }
    }
    for (String name : rows.keySet()) {
      if (!selection.containsKey(name)) {
        throw new MisuseException(
            "rows of tensor '" + name + "' are selected, but the selection leaves the tensor out");
      }
    }
    return Collections.unmodifiableSequencedMap(selection);
  }

  private static void requireKnown(String name, Map<String, StoredTensor> tensors) {
    if (!tensors.containsKey(name)) {
      throw new MisuseException(Names.unknown(name, tensors.keySet()));
    }
  }

  /// Rules for tensor parallelism: which part of each tensor a rank gets.
  public static Slices.Builder slices() {
    return new Slices.Builder();
  }

  /// Says which part of each tensor a rank gets where several share a model (tensor parallelism): rules by name say
  /// along which axis a tensor is cut into equal parts. Tensors that no rule names are whole on each rank. Immutable.
  public static final class Slices {
    private record Rule(NamePattern tensors, TensorSlice slice) {}

    private final List<Rule> rules;

    private Slices(List<Rule> rules) {
      this.rules = List.copyOf(rules);
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
              "the rule along('"
                  + rules.get(i).tensors()
                  + "') of slices applies to no tensor: no name matches it, or earlier rules match"
                  + " these names; the captures are {i}, {name} and {name*}, and there is no other"
                  + " wildcard");
        }
      }
      return Collections.unmodifiableSequencedMap(slices);
    }

    /// Makes [Slices]. Not thread-safe.
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
        List<Integer> sizes =
            parts.length == 0 ? List.of(1) : Arrays.stream(parts).boxed().toList();
        rules.add(new Rule(new NamePattern(tensors), new TensorSlice(axis, sizes)));
        return this;
      }

      public Slices build() {
        return new Slices(rules);
      }
    }
  }
}
