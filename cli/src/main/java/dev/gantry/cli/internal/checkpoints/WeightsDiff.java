// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.checkpoints;

import dev.gantry.cli.internal.checkpoints.Compared.Side;
import dev.gantry.cli.internal.input.TensorParts;
import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.DType;
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
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;

/// Reports how two sets of tensors differ.
///
/// @param added tensors of the second set alone
/// @param removed tensors of the first set alone
/// @param changed tensors of another dtype or shape
/// @param differing tensors of the same dtype and shape with other bytes
/// @param same how many tensors do not differ
public record WeightsDiff(
    SequencedMap<String, Kind> added,
    SequencedMap<String, Kind> removed,
    SequencedMap<String, Change> changed,
    SequencedMap<String, Difference> differing,
    int same)
    implements Report {
  private static final int EXIT_DIFFERENT = 1;

  record Kind(String dtype, TensorShape shape) {
    static Kind of(StoredTensor tensor) {
      return new Kind(tensor.dtype().name(), tensor.shape());
    }

    @Override
    public String toString() {
      return dtype + " " + shape;
    }
  }

  /// @param maxDifference the largest absolute difference, where it was asked for and only the dtype differs
  record Change(Kind before, Kind after, Optional<Double> maxDifference) {}

  /// @param by `checksum`, or `bytes` if they were read
  /// @param maxDifference the largest absolute difference, where it was asked for and the dtype is a number
  ///     of 8 bits or more; NaN if a value is NaN on one side only
  record Difference(String by, Optional<Double> maxDifference) {}

  /// @param before the first set
  /// @param values whether to compute the largest differences
  public static WeightsDiff of(GantrySession session, Side before, Side after, boolean values) {
    WeightsDiff diff =
        new WeightsDiff(
            new LinkedHashMap<>(),
            new LinkedHashMap<>(),
            new LinkedHashMap<>(),
            new LinkedHashMap<>(),
            0);
    List<String> read = new ArrayList<>();
    before
        .tensors()
        .forEach((name, tensor) -> {
          StoredTensor other = after.tensors().get(name);
          if (other == null) {
            diff.removed.put(name, Kind.of(tensor));
          } else if (diff.compare(name, tensor, other, before, after, values)) {
            read.add(name);
          }
        });
    after
        .tensors()
        .forEach((name, tensor) -> {
          if (!before.tensors().containsKey(name)) {
            diff.added.put(name, Kind.of(tensor));
          }
        });
    diff.read(session, before, after, read, values);
    int unlike = diff.removed.size() + diff.changed.size() + diff.differing.size();
    return new WeightsDiff(
        diff.added, diff.removed, diff.changed, diff.differing, before.tensors().size() - unlike);
  }

  /// Compares what is known of a tensor.
  ///
  /// @return whether both must be read
  private boolean compare(
      String name,
      StoredTensor tensor,
      StoredTensor other,
      Side before,
      Side after,
      boolean values) {
    if (!Kind.of(tensor).equals(Kind.of(other))) {
      changed.put(name, new Change(Kind.of(tensor), Kind.of(other), Optional.empty()));
      return values && tensor.shape().equals(other.shape());
    }
    Optional<Integer> sum = before.sum(name);
    Optional<Integer> otherSum = after.sum(name);
    if (sum.isEmpty() || otherSum.isEmpty()) {
      return true;
    }
    if (sum.equals(otherSum)) {
      return false;
    }
    differing.put(name, new Difference("checksum", Optional.empty()));
    return values;
  }

  private void read(
      GantrySession session, Side before, Side after, List<String> names, boolean values) {
    List<StoredTensor> tensors =
        names.stream().map(name -> Objects.requireNonNull(before.tensors().get(name))).toList();
    List<StoredTensor> others =
        names.stream().map(name -> Objects.requireNonNull(after.tensors().get(name))).toList();
    long total = tensors.stream().mapToLong(StoredTensor::bytes).sum();
    long done = 0;
    try (Progress bar = new Progress("diff", total)) {
      for (int begin = 0, end; begin < names.size(); begin = end) {
        end = TensorParts.end(tensors, begin);
        try (LoadedTensors loaded = load(session, tensors.subList(begin, end));
            LoadedTensors other = load(session, others.subList(begin, end))) {
          for (int i = begin; i < end; i++) {
            MemorySegment first = bytes(loaded.regions().get(i - begin));
            MemorySegment second = bytes(other.regions().get(i - begin));
            compare(names.get(i), tensors.get(i), others.get(i).dtype(), first, second, values);
            done += first.byteSize();
            bar.onProgress(done, total);
          }
        }
      }
    }
  }

  private static LoadedTensors load(GantrySession session, List<StoredTensor> tensors) {
    return LoadedTensors.load(session, tensors, Device.HOST, TransferOptions.defaults());
  }

  private static MemorySegment bytes(Region region) {
    return switch (region.source()) {
      case Memory.OnHost(MemorySegment segment) -> segment;
      case Memory.OnDevice memory ->
          throw new IllegalStateException("not in host memory: " + memory);
    };
  }

  private void compare(
      String name,
      StoredTensor tensor,
      DType other,
      MemorySegment first,
      MemorySegment second,
      boolean values) {
    boolean sameType = tensor.dtype() == other;
    if (sameType && first.mismatch(second) < 0) {
      return;
    }
    Optional<Double> most =
        values
            ? Numbers.maxDifference(
                tensor.dtype(), first, other, second, tensor.shape().elements().orElseThrow())
            : Optional.empty();
    if (sameType) {
      differing.merge(
          name, new Difference("bytes", most), (known, _) -> new Difference(known.by(), most));
    } else {
      changed.computeIfPresent(name, (_, known) -> new Change(known.before(), known.after(), most));
    }
  }

  private boolean isEmpty() {
    return added.isEmpty() && removed.isEmpty() && changed.isEmpty() && differing.isEmpty();
  }

  @Override
  public void print(PrintWriter out) {
    removed.forEach((name, kind) -> out.println("- " + Table.line(name) + "  " + kind));
    added.forEach((name, kind) -> out.println("+ " + Table.line(name) + "  " + kind));
    changed.forEach((name, change) ->
        out.println(
            "~ "
                + Table.line(name)
                + "  "
                + change.before()
                + " -> "
                + change.after()
                + most(change.maxDifference())));
    differing.forEach((name, difference) ->
        out.println("! " + Table.line(name) + "  other values" + most(difference.maxDifference())));
    out.printf(
        "%,d tensors are the same, %,d have other values, %,d another dtype or shape, %,d added,"
            + " %,d removed%n",
        same, differing.size(), changed.size(), added.size(), removed.size());
  }

  private static String most(Optional<Double> difference) {
    return difference.map(value -> ", at most " + value + " apart").orElse("");
  }

  @Override
  public int exitCode(PrintWriter err) {
    return isEmpty() ? 0 : EXIT_DIFFERENT;
  }

  @Override
  public Object json() {
    return Json.object()
        .with("added", added)
        .with("removed", removed)
        .with("changed", changed)
        .with("differing", differing)
        .with("same", same);
  }
}
