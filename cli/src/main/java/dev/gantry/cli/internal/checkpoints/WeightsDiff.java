// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.checkpoints;

import dev.gantry.cli.internal.checkpoints.Compared.Side;
import dev.gantry.cli.internal.input.TensorParts;
import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.StoredTensor;
import java.io.PrintWriter;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;

/// Reports how two sets of tensors differ.
///
/// @param tensors the tensors that differ, by name
/// @param same the number of tensors that do not differ
public record WeightsDiff(SequencedMap<String, Difference> tensors, long same) implements Report {
  private static final int EXIT_DIFFERENT = 1;

  /// The kinds of differences between the two sides' tensors of one name.
  enum Change {
    REMOVED("-"),
    ADDED("+"),
    RETYPED("~"),
    VALUES("!");

    private final String mark;

    Change(String mark) {
      this.mark = mark;
    }

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  record Kind(String dtype, TensorShape shape) {
    @Override
    public String toString() {
      return dtype + " " + shape;
    }
  }

  /// @param before the dtype and shape on the first side; empty for a tensor that was added
  /// @param after the dtype and shape on the second side; empty for a tensor that was removed
  /// @param by `checksum` if recorded checksums differ, `bytes` if the values were read; empty if
  ///     the values were not compared
  /// @param maxDifference the largest absolute difference between the values; empty unless the
  ///     user asked for it, the shapes are equal and both dtypes are of plain numbers; NaN if a
  ///     value is NaN on one side only
  record Difference(
      Change change,
      Optional<Kind> before,
      Optional<Kind> after,
      Optional<String> by,
      Optional<Double> maxDifference) {
    Difference read(Optional<Double> most) {
      return new Difference(change, before, after, Optional.of(by.orElse("bytes")), most);
    }
  }

  /// @param values whether to read all differing tensors of equal shapes and compute their
  ///     largest differences
  public static WeightsDiff of(GantrySession session, Side before, Side after, boolean values) {
    SequencedMap<String, Difference> found = new LinkedHashMap<>();
    SequencedMap<String, StoredTensor> names = new LinkedHashMap<>(before.tensors());
    after.tensors().forEach(names::putIfAbsent);
    List<String> read = new ArrayList<>();
    for (String name : names.keySet()) {
      Optional<Kind> kind = kind(before, name);
      Optional<Kind> other = kind(after, name);
      Change change =
          kind.isEmpty()
              ? Change.ADDED
              : other.isEmpty()
                  ? Change.REMOVED
                  : kind.equals(other) ? Change.VALUES : Change.RETYPED;
      Optional<Integer> sum = before.sum(name);
      boolean known = change == Change.VALUES && sum.isPresent() && after.sum(name).isPresent();
      if (known && sum.equals(after.sum(name))) {
        continue;
      }
      Optional<String> by = known ? Optional.of("checksum") : Optional.empty();
      found.put(name, new Difference(change, kind, other, by, Optional.empty()));
      boolean sameShape = kind.map(Kind::shape).equals(other.map(Kind::shape));
      if (sameShape && (values || (change == Change.VALUES && !known))) {
        read.add(name);
      }
    }
    read(session, before, after, read, values, found);
    return new WeightsDiff(found, names.size() - found.size());
  }

  private static Optional<Kind> kind(Side side, String name) {
    return Optional.ofNullable(side.tensors().get(name))
        .map(tensor -> new Kind(tensor.dtype().name(), tensor.shape()));
  }

  /// Reads tensors that have equal shapes on both sides. Those with equal dtypes and bytes are
  /// removed from `found`; the others get their largest difference if `values` is true.
  private static void read(
      GantrySession session,
      Side before,
      Side after,
      List<String> names,
      boolean values,
      SequencedMap<String, Difference> found) {
    List<StoredTensor> tensors = tensors(before, names);
    List<StoredTensor> others = tensors(after, names);
    try (Progress bar = Progress.ofSteps("diff", names.size())) {
      for (int begin = 0, end; begin < names.size(); begin = end) {
        end = TensorParts.end(tensors, begin);
        try (LoadedTensors loaded = load(session, tensors.subList(begin, end));
            LoadedTensors other = load(session, others.subList(begin, end))) {
          for (int i = begin; i < end; i++) {
            MemorySegment first = bytes(loaded.regions().get(i - begin));
            MemorySegment second = bytes(other.regions().get(i - begin));
            StoredTensor one = tensors.get(i);
            if (one.dtype() == others.get(i).dtype() && first.mismatch(second) < 0) {
              found.remove(names.get(i));
              continue;
            }
            Optional<Double> most =
                values
                    ? Numbers.maxDifference(one, first, others.get(i).dtype(), second)
                    : Optional.empty();
            var _ = found.computeIfPresent(names.get(i), (_, known) -> known.read(most));
          }
        }
        bar.onProgress(end, names.size());
      }
    }
  }

  private static List<StoredTensor> tensors(Side side, List<String> names) {
    return names.stream().map(name -> Objects.requireNonNull(side.tensors().get(name))).toList();
  }

  private static LoadedTensors load(GantrySession session, List<StoredTensor> tensors) {
    return LoadedTensors.load(session, tensors, Device.HOST, TransferOptions.defaults());
  }

  private static MemorySegment bytes(Region region) {
    return switch (region.source()) {
      case Memory.OnHost(MemorySegment segment) -> segment;
      case Memory.OnDevice memory -> throw new IllegalStateException("not on the host: " + memory);
    };
  }

  @Override
  public void print(PrintWriter out) {
    tensors.forEach((name, difference) -> {
      List<String> kinds = new ArrayList<>();
      difference.before().ifPresent(kind -> kinds.add(kind.toString()));
      difference
          .after()
          .filter(kind -> !kinds.contains(kind.toString()))
          .ifPresent(kind -> kinds.add(kind.toString()));
      out.println(
          difference.change().mark
              + " "
              + Table.line(name)
              + "  "
              + String.join(" -> ", kinds)
              + difference.maxDifference().map(most -> ", at most " + most + " apart").orElse(""));
    });
    out.printf("%,d tensors differ, %,d are the same%n", tensors.size(), same);
  }

  @Override
  public int exitCode(PrintWriter err) {
    return tensors.isEmpty() ? 0 : EXIT_DIFFERENT;
  }

  @Override
  public Object json() {
    return Json.object().with("differences", tensors).with("same", same);
  }
}
