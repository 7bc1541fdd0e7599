// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.weights.NearestNames;
import dev.gantry.formats.spi.StoredTensor;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Predicate;

/// Which tensors of some weights are wanted, and of which of them only some rows. Immutable; as
/// safe for use by several threads as the predicate that it may hold.
public final class TensorSelection {
  private static final TensorSelection ALL = new TensorSelection(new Matching(_ -> true), Map.of());

  private final Wanted wanted;
  private final Map<String, Rows> rows;

  private sealed interface Wanted {}

  private record Names(Set<String> names) implements Wanted {}

  private record Matching(Predicate<TensorInfo> predicate) implements Wanted {}

  private record Rows(long from, long to) {}

  private TensorSelection(Wanted wanted, Map<String, Rows> rows) {
    this.wanted = wanted;
    this.rows = rows;
  }

  public static TensorSelection all() {
    return ALL;
  }

  /// Exactly these; a load with a name that the weights do not have is refused.
  public static TensorSelection names(Collection<String> names) {
    return new TensorSelection(new Names(Set.copyOf(names)), Map.of());
  }

  /// Those whose names begin so; possibly none.
  public static TensorSelection prefix(String prefix) {
    return matching(tensor -> tensor.name().startsWith(prefix));
  }

  /// Those for which `predicate` holds; possibly none.
  public static TensorSelection matching(Predicate<TensorInfo> predicate) {
    return new TensorSelection(new Matching(predicate), Map.of());
  }

  /// This selection, but of tensor `name`, which must be in it, only rows `from` (inclusive) to
  /// `to` (exclusive) of the first dimension.
  public TensorSelection rows(String name, long from, long to) {
    Map<String, Rows> more = new LinkedHashMap<>(rows);
    more.put(name, new Rows(from, to));
    return new TensorSelection(wanted, Collections.unmodifiableMap(more));
  }

  /// The selected ones of `tensors`, in their order there, each cut to the rows that are wanted.
  ///
  /// @throws MisuseException if a name is unknown, with the nearest that are known; if rows are
  ///     asked for of a tensor that is not selected, or that [StoredTensor#rows] cannot give
  SequencedMap<String, StoredTensor> of(SequencedMap<String, StoredTensor> tensors) {
    rows.keySet().forEach(name -> requireKnown(name, tensors));
    Predicate<StoredTensor> selected =
        switch (wanted) {
          case Names(Set<String> names) -> {
            names.forEach(name -> requireKnown(name, tensors));
            yield tensor -> names.contains(tensor.name());
          }
          case Matching(Predicate<TensorInfo> predicate) ->
              tensor -> predicate.test(TensorInfo.of(tensor));
        };
    SequencedMap<String, StoredTensor> selection = new LinkedHashMap<>();
    for (StoredTensor tensor : tensors.values()) {
      if (selected.test(tensor)) {
        Rows part = rows.get(tensor.name());
        selection.put(tensor.name(), part == null ? tensor : tensor.rows(part.from(), part.to()));
      }
    }
    for (String name : rows.keySet()) {
      if (!selection.containsKey(name)) {
        throw new MisuseException("rows of tensor '" + name + "' are wanted, but not the tensor");
      }
    }
    return Collections.unmodifiableSequencedMap(selection);
  }

  private static void requireKnown(String name, Map<String, StoredTensor> tensors) {
    if (!tensors.containsKey(name)) {
      throw new MisuseException(NearestNames.unknown(name, tensors.keySet()));
    }
  }
}
