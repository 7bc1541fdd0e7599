// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.OptionalInt;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.LongRange;

class MixedOrderPropertyTest {
  private record Dataset(double weight, long length) {}

  @Provide
  Arbitrary<List<Dataset>> datasets() {
    return Combinators.combine(
            Arbitraries.of(0.01, 0.1, 0.25, 1.0, 1.0, 3.0, 7.77, 100.0),
            Arbitraries.longs().between(0, 60))
        .as(Dataset::new)
        .list()
        .ofMinSize(1)
        .ofMaxSize(6)
        .withoutEdgeCases();
  }

  private static MixedOrder order(List<Dataset> datasets, boolean untilAll, long seed, long epoch) {
    return MixedOrder.of(
        datasets.stream().map(Dataset::weight).toList(),
        datasets.stream().map(Dataset::length).toList(),
        untilAll,
        seed,
        epoch);
  }

  private static MixedOrder endless(List<Dataset> datasets, long seed, long epoch) {
    return MixedOrder.of(
        datasets.stream().map(Dataset::weight).toList(),
        Collections.nCopies(datasets.size(), MixedOrder.UNKNOWN),
        true,
        seed,
        epoch);
  }

  /// Returns the datasets that `order` chooses after the counts `given`, for up to `most` batches.
  private static List<Integer> walk(MixedOrder order, long[] given, int most) {
    long[] counts = given.clone();
    List<Integer> chosen = new ArrayList<>();
    while (chosen.size() < most) {
      OptionalInt next = order.next(counts);
      if (next.isEmpty()) {
        break;
      }
      counts[next.getAsInt()]++;
      chosen.add(next.getAsInt());
    }
    return chosen;
  }

  /// Before any batch, the number of a dataset's batches differs from its share by at most one
  /// batch plus the other datasets' differences.
  @Property
  void sharesAreTheWeights(
      @ForAll("datasets") List<Dataset> datasets,
      @ForAll long seed,
      @ForAll @LongRange(max = 1000) long epoch) {
    MixedOrder order = endless(datasets, seed, epoch);
    double sum = datasets.stream().mapToDouble(Dataset::weight).sum();
    long[] given = new long[datasets.size()];
    for (int batches = 1; batches <= 1000; batches++) {
      given[order.next(given).orElseThrow()]++;
      for (int i = 0; i < given.length; i++) {
        double share = datasets.get(i).weight() / sum;
        assertThat(Math.abs(given[i] - batches * share)).isLessThan(1.01 + given.length * share);
      }
    }
  }

  /// The order is the same if a dataset's length becomes known only at its end.
  @Property
  void lengthsNeedNotBeKnown(
      @ForAll("datasets") List<Dataset> datasets, @ForAll boolean untilAll, @ForAll long seed) {
    MixedOrder order = endless(datasets, seed, 0);
    if (!untilAll) {
      order =
          MixedOrder.of(
              datasets.stream().map(Dataset::weight).toList(),
              Collections.nCopies(datasets.size(), MixedOrder.UNKNOWN),
              false,
              seed,
              0);
    }
    long[] given = new long[datasets.size()];
    List<Integer> chosen = new ArrayList<>();
    for (OptionalInt next = order.next(given); next.isPresent(); next = order.next(given)) {
      int dataset = next.getAsInt();
      if (given[dataset] == datasets.get(dataset).length()) {
        order = order.withLength(dataset, given[dataset]);
      } else {
        given[dataset]++;
        chosen.add(dataset);
      }
    }
    MixedOrder known = order(datasets, untilAll, seed, 0);
    assertThat(chosen).isEqualTo(walk(known, new long[given.length], Integer.MAX_VALUE));
  }

  @Property
  void itEndsWithTheFirstOrWithTheLast(
      @ForAll("datasets") List<Dataset> datasets, @ForAll long seed) {
    List<Integer> toTheLast = all(order(datasets, true, seed, 0), datasets);
    for (int i = 0; i < datasets.size(); i++) {
      assertThat(Collections.frequency(toTheLast, i)).isEqualTo((int) datasets.get(i).length());
    }
    List<Integer> toTheFirst = all(order(datasets, false, seed, 0), datasets);
    int batches = toTheFirst.size();
    List<Integer> onward = walk(endless(datasets, seed, 0), new long[datasets.size()], batches + 1);
    assertThat(toTheFirst).isEqualTo(onward.subList(0, batches));
    // The next batch would have been due from a dataset that has no more batches.
    int ended = onward.getLast();
    assertThat(Collections.frequency(toTheFirst, ended))
        .isEqualTo((int) datasets.get(ended).length());
  }

  private static List<Integer> all(MixedOrder order, List<Dataset> datasets) {
    return walk(order, new long[datasets.size()], Integer.MAX_VALUE);
  }

  @Example
  void epochsAndSeedsHaveOrdersOfTheirOwn() {
    List<Dataset> two = List.of(new Dataset(1, 0), new Dataset(1, 0));
    List<Integer> one = walk(endless(two, 1, 0), new long[2], 200);
    assertThat(walk(endless(two, 1, 0), new long[2], 200)).isEqualTo(one);
    assertThat(walk(endless(two, 1, 1), new long[2], 200)).isNotEqualTo(one);
    assertThat(walk(endless(two, 2, 0), new long[2], 200)).isNotEqualTo(one);
    // The datasets do not simply take turns.
    assertThat(one).containsSequence(0, 0).containsSequence(1, 1);
  }

  @Example
  void weightsWithoutSenseAreRefused() {
    for (double[] weights :
        new double[][] {
          {}, {0, 1}, {1, -1}, {Double.NaN}, {Double.POSITIVE_INFINITY, 1}, {1, 1e9}
        }) {
      List<Double> list = Arrays.stream(weights).boxed().toList();
      List<Long> lengths = Collections.nCopies(weights.length, 1L);
      assertThatThrownBy(() -> MixedOrder.of(list, lengths, true, 0, 0))
          .isInstanceOf(MisuseException.class);
    }
    assertThatThrownBy(
            () -> MixedOrder.of(List.of(1.0, 65536.0), List.of(1L << 30, 1L), true, 0, 0))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("too many batches");
    assertThatThrownBy(() -> MixedOrder.of(List.of(1.0), List.of(1L, 2L), true, 0, 0))
        .isInstanceOf(MisuseException.class);
  }
}
