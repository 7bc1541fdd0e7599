// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.Retention.Best;
import dev.gantry.formats.checkpoint.Retention.Goal;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

class RetentionPropertiesTest {
  private static final String LOSS = "loss";

  private record Save(long step, Optional<Double> loss) {}

  /// Returns checkpoints; some steps were saved twice, and some losses are equal, NaN or missing.
  @Provide
  Arbitrary<List<CheckpointFolder>> checkpoints() {
    Arbitrary<Optional<Double>> losses =
        Arbitraries.of(
            Optional.empty(),
            Optional.of(Double.NaN),
            Optional.of(Double.NEGATIVE_INFINITY),
            Optional.of(Double.POSITIVE_INFINITY),
            Optional.of(1.0),
            Optional.of(2.0),
            Optional.of(3.0));
    return Combinators.combine(Arbitraries.longs().between(0, 12), losses)
        .as(Save::new)
        .list()
        .ofMinSize(1)
        .ofMaxSize(15)
        .map(RetentionPropertiesTest::stored)
        .withoutEdgeCases();
  }

  private static List<CheckpointFolder> stored(List<Save> saves) {
    List<CheckpointFolder> all = new ArrayList<>();
    for (Save save : saves) {
      long sequence = all.size() + 1L;
      LinkedHashMap<String, Double> metrics = new LinkedHashMap<>();
      save.loss().ifPresent(loss -> metrics.put(LOSS, loss));
      all.add(
          new CheckpointFolder(
              GantrySession.shared(),
              Path.of("gantry-step-" + save.step() + "-" + sequence),
              new Manifest(
                  save.step(),
                  sequence,
                  SaveHistory.NONE,
                  true,
                  new LinkedHashMap<>(),
                  metrics,
                  new LinkedHashMap<>(),
                  List.of())));
    }
    return all;
  }

  @Provide
  Arbitrary<Retention> retentions() {
    Arbitrary<Optional<Best>> best =
        Combinators.combine(Arbitraries.integers().between(1, 4), Arbitraries.of(Goal.class))
            .as((count, goal) -> new Best(LOSS, count, goal))
            .optional();
    return Combinators.combine(
            Arbitraries.integers().between(0, 5), Arbitraries.longs().between(0, 5), best)
        .as(Retention::new)
        .withoutEdgeCases();
  }

  private static Set<CheckpointFolder> kept(Retention retention, List<CheckpointFolder> all) {
    Set<CheckpointFolder> kept = new HashSet<>(all);
    retention.surplus(all).forEach(kept::remove);
    return kept;
  }

  /// Returns the last save of each step.
  private static List<CheckpointFolder> current(List<CheckpointFolder> all) {
    Map<Long, CheckpointFolder> bySteps = new LinkedHashMap<>();
    all.forEach(one -> bySteps.put(one.step(), one));
    return bySteps.values().stream()
        .sorted(Comparator.comparingLong(one -> one.sequence()))
        .toList();
  }

  @Property
  void theNewestStaysAndNothingThatWasReplaced(
      @ForAll("checkpoints") List<CheckpointFolder> all,
      @ForAll("retentions") Retention retention) {
    Set<CheckpointFolder> kept = kept(retention, all);
    assertThat(kept).contains(all.getLast()).isSubsetOf(current(all));
  }

  @Property
  void whatAnyRuleWantsStaysAndNothingElse(
      @ForAll("checkpoints") List<CheckpointFolder> all,
      @ForAll("retentions") Retention retention) {
    Set<CheckpointFolder> union = new HashSet<>();
    union.addAll(kept(new Retention(retention.last(), 0, Optional.empty()), all));
    union.addAll(kept(new Retention(0, retention.everySteps(), Optional.empty()), all));
    union.addAll(kept(new Retention(0, 0, retention.best()), all));
    assertThat(kept(retention, all)).isEqualTo(union);
  }

  @Property
  void eachRuleAlone(
      @ForAll("checkpoints") List<CheckpointFolder> all,
      @ForAll("retentions") Retention retention) {
    List<CheckpointFolder> current = current(all);
    int last = Math.max(1, retention.last());
    assertThat(kept(new Retention(retention.last(), 0, Optional.empty()), all))
        .containsExactlyInAnyOrderElementsOf(
            current.subList(Math.max(0, current.size() - last), current.size()));
    long every = retention.everySteps();
    assertThat(kept(new Retention(0, every, Optional.empty()), all))
        .containsExactlyInAnyOrderElementsOf(
            current.stream()
                .filter(one -> one.equals(all.getLast()) || (every > 0 && one.step() % every == 0))
                .toList());
  }

  /// No removed checkpoint is better than a kept one, or equal to it and older.
  @Property
  void theBestStay(
      @ForAll("checkpoints") List<CheckpointFolder> all,
      @ForAll("retentions") Retention retention) {
    Best best = retention.best().orElse(new Best(LOSS, 2, Goal.MINIMIZE));
    Set<CheckpointFolder> kept = kept(new Retention(0, 0, Optional.of(best)), all);
    List<CheckpointFolder> rated =
        current(all).stream().filter(one -> !Double.isNaN(loss(one))).toList();
    List<CheckpointFolder> stay = rated.stream().filter(kept::contains).toList();
    assertThat(stay.size())
        .isBetween(Math.min(best.count(), rated.size()), Math.min(best.count() + 1, rated.size()));
    for (CheckpointFolder gone : rated) {
      if (!kept.contains(gone)) {
        assertThat(stay.stream().filter(one -> isBetter(best.goal(), one, gone)).count())
            .isGreaterThanOrEqualTo(best.count());
      }
    }
  }

  private static double loss(CheckpointFolder one) {
    return one.metrics().getOrDefault(LOSS, Double.NaN);
  }

  private static boolean isBetter(Goal goal, CheckpointFolder one, CheckpointFolder other) {
    double difference = goal == Goal.MINIMIZE ? loss(other) - loss(one) : loss(one) - loss(other);
    return loss(one) == loss(other) ? one.sequence() < other.sequence() : difference > 0;
  }

  /// A second application of a retention removes nothing.
  @Property
  void onceMoreChangesNothing(
      @ForAll("checkpoints") List<CheckpointFolder> all,
      @ForAll("retentions") Retention retention) {
    List<CheckpointFolder> left = new ArrayList<>(all);
    left.removeAll(retention.surplus(all));
    assertThat(retention.surplus(left)).isEmpty();
  }
}
