// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.batches.SelectedSamples;
import dev.gantry.formats.internal.batches.Selection;
import dev.gantry.formats.internal.batches.Weighting;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.spi.SampleCatalogue;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.SequencedSet;
import java.util.function.Supplier;
import java.util.stream.Stream;

/// Says which samples of a dataset the batches are made of.
///
/// @param selections are applied in order: each selects from the samples that the previous ones
///     kept
/// @param weighting the weights by which samples are drawn; empty if each sample comes once an
///     epoch
public record ChosenSamples(List<Selection> selections, Optional<Weighting> weighting) {
  public ChosenSamples {
    selections = List.copyOf(selections);
  }

  /// Whether all samples of the dataset are chosen, each once.
  public boolean isAll() {
    return selections.isEmpty() && weighting.isEmpty();
  }

  /// Returns the fields that must be read: the fields of batches, followed by the fields by which
  /// samples are chosen.
  ///
  /// @param available the names of the dataset's fields
  /// @throws MisuseException if samples are chosen by a field that the dataset does not have
  public List<String> fields(List<String> ofBatches, List<String> available) {
    SequencedSet<String> fields = new LinkedHashSet<>(ofBatches);
    Stream.concat(
            selections.stream()
                .flatMap(one ->
                    one instanceof Selection.Where(String field, _)
                        ? Stream.of(field)
                        : Stream.empty()),
            weighting.map(Weighting::field).stream())
        .forEach(field -> {
          if (!available.contains(field)) {
            throw new MisuseException(
                "optFilter, optBalanced or optWeights names the field '%s'; it must be one of %s"
                    .formatted(field, available));
          }
          fields.add(field);
        });
    return List.copyOf(fields);
  }

  /// Makes batches of the samples.
  ///
  /// @param store holds the fields that [#fields] names, in that order; it is closed if this
  ///     throws
  /// @param count how many of these fields, from the first, a batch has
  public EpochBatches batches(
      GantrySession session,
      SampleCatalogue store,
      int count,
      OrderOptions order,
      PlanLimits limits) {
    return Cleanup.orUndo(() -> openBatches(session, store, count, order, limits), store::close);
  }

  private EpochBatches openBatches(
      GantrySession session,
      SampleCatalogue store,
      int count,
      OrderOptions order,
      PlanLimits limits) {
    SampleCatalogue chosen = store;
    for (Selection selection : selections) {
      SampleCatalogue before = chosen;
      chosen = named(option(selection), () -> selection.of(session, before));
    }
    SampleCatalogue all = chosen;
    OrderOptions drawn =
        weighting
            .map(how -> named(option(how), () -> order.withWeights(how.of(session, all))))
            .orElse(order);
    return EpochBatches.of(SelectedSamples.withFirstFields(all, count), drawn, limits);
  }

  /// Runs `work`; if it refuses, the error begins with the option that asked for it.
  private static <T> T named(String option, Supplier<T> work) {
    try {
      return work.get();
    } catch (MisuseException e) {
      throw new MisuseException(option + ": " + e.getMessage());
    }
  }

  private static String option(Selection selection) {
    return switch (selection) {
      case Selection.Range(long from, long to) -> "optRange(" + from + ", " + to + ")";
      case Selection.Numbers _ -> "optSubset";
      case Selection.Part(_, int part, List<Integer> ratio) ->
          "optSplit, part " + part + " of " + ratio;
      case Selection.Where(String field, _) -> "optFilter of '" + field + "'";
    };
  }

  private static String option(Weighting weighting) {
    return switch (weighting) {
      case Weighting.Balanced(_, String field) -> "optBalanced of '" + field + "'";
      case Weighting.ByValue(_, String field, _) -> "optWeights of '" + field + "'";
    };
  }
}
