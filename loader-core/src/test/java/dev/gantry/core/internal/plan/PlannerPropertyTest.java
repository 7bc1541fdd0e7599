// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import static dev.gantry.core.internal.plan.PlanLimits.BLOCK_BYTES;
import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.plan.ReadPlan.Relocation;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.PropertyDefaults;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;

/// The rules for all plans, for any extents and limits.
///
/// The arbitraries include the edge cases, so jqwik's own edge cases would only add many runs.
@PropertyDefaults(edgeCases = EdgeCasesMode.NONE)
class PlannerPropertyTest {
  private static final List<Location> FILES = Stream.of("a", "b", "c").map(Location::of).toList();

  /// Extents near one another or far apart, at the edges of blocks and beside them, some of them
  /// empty, some of them repeated.
  @Provide
  Arbitrary<List<ExtentRequest>> wanted() {
    Arbitrary<Long> near = Arbitraries.longs().between(0, 64 * BLOCK_BYTES);
    Arbitrary<Long> borders =
        Arbitraries.longs()
            .between(0, 64)
            .flatMap(block -> Arbitraries.of(-1L, 0L, 1L).map(by -> block * BLOCK_BYTES + by))
            .map(offset -> Math.max(0, offset));
    Arbitrary<Long> far = Arbitraries.longs().between(0, 1L << 45);
    Arbitrary<Long> offsets =
        Arbitraries.frequencyOf(Tuple.of(4, near), Tuple.of(3, borders), Tuple.of(1, far));
    Arbitrary<Long> lengths =
        Arbitraries.oneOf(
            Arbitraries.of(0L, 1L, (long) BLOCK_BYTES, 3L * BLOCK_BYTES + 1),
            Arbitraries.longs().between(0, 300),
            Arbitraries.longs().between(0, 40_000));
    Arbitrary<ExtentRequest> one =
        Combinators.combine(
                Arbitraries.of(FILES), offsets, lengths, Arbitraries.of(1, 2, 4, 8, 16, 256))
            .as((file, offset, length, alignment) ->
                new ExtentRequest(new Extent(file, offset, length), alignment));
    return one.list()
        .ofMaxSize(40)
        .flatMap(list ->
            Arbitraries.integers()
                .between(0, list.size())
                .map(repeated -> {
                  List<ExtentRequest> all = new ArrayList<>(list);
                  all.addAll(list.subList(0, repeated));
                  return all;
                }));
  }

  @Provide
  Arbitrary<PlanLimits> limits() {
    return Combinators.combine(
            Arbitraries.of(1, 2, 3, 8, 2048),
            Arbitraries.of(0L, 1L, 4095L, 4096L, 20_000L, 1L << 20),
            Arbitraries.of(1, 2, 7, 32, 1 << 17))
        .as((request, gap, slab) ->
            new PlanLimits((long) request * BLOCK_BYTES, gap, (long) slab * BLOCK_BYTES));
  }

  @Property
  void everyPlacementHoldsItsExtentsBytes(
      @ForAll("wanted") List<ExtentRequest> wanted, @ForAll("limits") PlanLimits limits) {
    ReadPlan plan = Planner.plan(wanted, limits);
    List<SyntheticSlab> slabs = SyntheticSlab.carryOut(plan);

    assertThat(plan.placements()).hasSameSizeAs(wanted);
    for (int i = 0; i < wanted.size(); i++) {
      Extent extent = wanted.get(i).extent();
      Placement placement = plan.placements().get(i);
      assertThat(placement.length()).isEqualTo(extent.length());
      if (extent.length() == 0) {
        assertThat(placement.slab()).isEqualTo(Placement.NOWHERE);
      } else {
        slabs.get(placement.slab()).assertHolds(extent, placement.offset());
      }
    }
  }

  @Property
  void readsAreAlignedBoundedAndInsideTheirSlabs(
      @ForAll("wanted") List<ExtentRequest> wanted, @ForAll("limits") PlanLimits limits) {
    ReadPlan plan = Planner.plan(wanted, limits);
    for (Read read : plan.reads()) {
      assertThat(read.fileOffset() % BLOCK_BYTES).isZero();
      assertThat(read.length() % BLOCK_BYTES).isZero();
      assertThat(read.slabOffset() % BLOCK_BYTES).isZero();
      assertThat(read.length()).isPositive().isLessThanOrEqualTo(limits.requestBytes());
      assertThat(read.required()).isPositive().isLessThanOrEqualTo(read.length());
      assertThat(read.slabOffset() + read.length())
          .isLessThanOrEqualTo(plan.slabSizes().get(read.slab()));
    }
    assertThat(plan.reads())
        .isSortedAccordingTo(
            Comparator.comparingInt((Read read) -> firstMention(wanted, read.file()))
                .thenComparingLong(Read::fileOffset));
  }

  @Property
  void nothingIsWrittenTwice(
      @ForAll("wanted") List<ExtentRequest> wanted, @ForAll("limits") PlanLimits limits) {
    ReadPlan plan = Planner.plan(wanted, limits);
    List<TreeMap<Long, Long>> ends = new ArrayList<>();
    plan.slabSizes().forEach(_ -> ends.add(new TreeMap<>()));
    plan.reads().forEach(read -> claim(ends.get(read.slab()), read.slabOffset(), read.length()));
    plan.relocations()
        .forEach(move -> claim(ends.get(move.toSlab()), move.toOffset(), move.length()));
  }

  private static void claim(NavigableMap<Long, Long> ends, long offset, long length) {
    Map.Entry<Long, Long> before = ends.lowerEntry(offset + length);
    assertThat(before == null || before.getValue() <= offset)
        .as("%s to %s overlaps %s", offset, offset + length, before)
        .isTrue();
    ends.put(offset, offset + length);
  }

  @Property
  void whatStaysInPlaceKeepsItsPhaseAndEverythingIsAligned(
      @ForAll("wanted") List<ExtentRequest> wanted, @ForAll("limits") PlanLimits limits) {
    ReadPlan plan = Planner.plan(wanted, limits);
    Set<Integer> movedTo =
        plan.relocations().stream().map(Relocation::toSlab).collect(Collectors.toSet());
    int moved = 0;
    for (int i = 0; i < wanted.size(); i++) {
      Extent extent = wanted.get(i).extent();
      Placement placement = plan.placements().get(i);
      int alignment = wanted.get(i).alignmentBytes();
      assertThat(placement.offset() % alignment).isZero();
      if (extent.length() > 0 && extent.offset() % alignment == 0) {
        assertThat(placement.offset() % BLOCK_BYTES).isEqualTo(extent.offset() % BLOCK_BYTES);
        assertThat(movedTo).as("only what must move lies there").doesNotContain(placement.slab());
      } else if (extent.length() > 0) {
        moved++;
      }
    }
    assertThat(plan.relocations()).as("relocated only what must be").hasSize(moved);
  }

  @Property
  void aShiftedPlanHoldsItsExtentsAlignedAndWritesNothingTwice(
      @ForAll("wanted") List<ExtentRequest> wanted, @ForAll("limits") PlanLimits limits) {
    ReadPlan plan = Planner.plan(wanted, limits, 16);
    List<SyntheticSlab> slabs = SyntheticSlab.carryOut(plan);
    long preferred = 0;
    long bytes = 0;
    for (int i = 0; i < wanted.size(); i++) {
      Extent extent = wanted.get(i).extent();
      Placement placement = plan.placements().get(i);
      if (extent.length() > 0) {
        assertThat(placement.offset() % wanted.get(i).alignmentBytes()).isZero();
        slabs.get(placement.slab()).assertHolds(extent, placement.offset());
        bytes += extent.length();
        preferred += placement.offset() % 16 == 0 ? extent.length() : 0;
      }
    }
    assertThat(preferred).as("bytes at multiples of 16").isGreaterThanOrEqualTo(bytes / 16);
    List<TreeMap<Long, Long>> ends = new ArrayList<>();
    plan.slabSizes().forEach(_ -> ends.add(new TreeMap<>()));
    for (Read read : plan.reads()) {
      // A read whose offset in the slab is a multiple of the block size may fill its last block.
      long written = read.slabOffset() % BLOCK_BYTES == 0 ? read.length() : read.required();
      claim(ends.get(read.slab()), read.slabOffset(), written);
      assertThat(read.slabOffset() + written)
          .isLessThanOrEqualTo(plan.slabSizes().get(read.slab()));
    }
    plan.relocations()
        .forEach(move -> claim(ends.get(move.toSlab()), move.toOffset(), move.length()));
  }

  @Property
  void slabsAreWholeBlocksAndKeepTheirBound(
      @ForAll("wanted") List<ExtentRequest> wanted, @ForAll("limits") PlanLimits limits) {
    ReadPlan plan = Planner.plan(wanted, limits);
    List<Cluster> clusters = Cluster.of(wanted);
    for (int slab = 0; slab < plan.slabSizes().size(); slab++) {
      long size = plan.slabSizes().get(slab);
      assertThat(size).isPositive();
      assertThat(size % BLOCK_BYTES).isZero();
      if (size > limits.slabBytes()) {
        // The slab then ends with overlapping extents, which cannot be read separately without
        // reading some bytes twice.
        assertThat(size).isLessThanOrEqualTo(limits.slabBytes() + longest(clusters) + BLOCK_BYTES);
      }
    }
    if (longest(clusters) + 2 * BLOCK_BYTES <= limits.slabBytes()
        && clusters.stream().allMatch(cluster -> cluster.extents() == 1)) {
      assertThat(plan.slabSizes()).allMatch(size -> size <= limits.slabBytes());
    }
  }

  private static long longest(List<Cluster> clusters) {
    return clusters.stream().mapToLong(Cluster::length).max().orElse(0);
  }

  @Property
  void noMoreIsReadThanTheExtentsBlocksAndTheGapsThatAreAllowed(
      @ForAll("wanted") List<ExtentRequest> wanted, @ForAll("limits") PlanLimits limits) {
    ReadPlan plan = Planner.plan(wanted, limits);
    List<Cluster> clusters = Cluster.of(wanted);
    long blocks = 0;
    long gaps = 0;
    for (int i = 0; i < clusters.size(); i++) {
      blocks += ceiling(clusters.get(i).end()) - floor(clusters.get(i).start());
      if (i > 0 && clusters.get(i - 1).file().equals(clusters.get(i).file())) {
        long gap = floor(clusters.get(i).start()) - ceiling(clusters.get(i - 1).end());
        gaps += gap > 0 && gap <= limits.gapBytes() ? gap : 0;
      }
    }
    assertThat(plan.readBytes()).isLessThanOrEqualTo(blocks + gaps);
    // No read includes a gap that is wider than the limit.
    for (Read read : plan.reads()) {
      for (int i = 1; i < clusters.size(); i++) {
        Cluster before = clusters.get(i - 1);
        Cluster after = clusters.get(i);
        if (before.file().equals(read.file()) && after.file().equals(read.file())) {
          boolean tooWide = floor(after.start()) - ceiling(before.end()) > limits.gapBytes();
          boolean spans =
              read.fileOffset() < before.end() && read.fileOffset() + read.length() > after.start();
          assertThat(tooWide && spans).as("%s spans the gap before %s", read, after).isFalse();
        }
      }
    }
  }

  @Property
  void theFileMustHaveWhatIsWantedAndNoMore(
      @ForAll("wanted") List<ExtentRequest> wanted, @ForAll("limits") PlanLimits limits) {
    ReadPlan plan = Planner.plan(wanted, limits);
    for (Location file : FILES) {
      long end =
          wanted.stream()
              .map(ExtentRequest::extent)
              .filter(extent -> extent.file().equals(file) && extent.length() > 0)
              .mapToLong(Extent::end)
              .max()
              .orElse(0);
      long needed =
          plan.reads().stream()
              .filter(read -> read.file().equals(file))
              .mapToLong(read -> read.fileOffset() + read.required())
              .max()
              .orElse(0);
      assertThat(needed).isEqualTo(end);
    }
  }

  private static int firstMention(List<ExtentRequest> wanted, Location file) {
    for (int i = 0; i < wanted.size(); i++) {
      Extent extent = wanted.get(i).extent();
      if (extent.length() > 0 && extent.file().equals(file)) {
        return i;
      }
    }
    throw new AssertionError("no extent is in " + file);
  }

  static long floor(long offset) {
    return offset / BLOCK_BYTES * BLOCK_BYTES;
  }

  static long ceiling(long offset) {
    return floor(offset + BLOCK_BYTES - 1);
  }

  /// A run of extents of one file in which each extent overlaps the next.
  private record Cluster(Location file, long start, long end, int extents) {
    long length() {
      return end - start;
    }

    static List<Cluster> of(List<ExtentRequest> wanted) {
      List<Extent> sorted =
          new ArrayList<>(new HashSet<>(wanted.stream().map(ExtentRequest::extent).toList()));
      sorted.removeIf(extent -> extent.length() == 0);
      sorted.sort(
          Comparator.comparing((Extent extent) -> extent.file().path())
              .thenComparingLong(Extent::offset));
      List<Cluster> clusters = new ArrayList<>();
      for (Extent extent : sorted) {
        Cluster last = clusters.isEmpty() ? null : clusters.getLast();
        if (last != null && last.file.equals(extent.file()) && extent.offset() < last.end) {
          long end = Math.max(last.end, extent.end());
          clusters.set(
              clusters.size() - 1, new Cluster(last.file, last.start, end, last.extents + 1));
        } else {
          clusters.add(new Cluster(extent.file(), extent.offset(), extent.end(), 1));
        }
      }
      return clusters;
    }
  }
}
