// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import static dev.gantry.core.internal.plan.PlanLimits.BLOCK_BYTES;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Plans whose shape is known in advance.
class PlannerTest {
  private static final Location FILE = Location.of("weights");

  private static ExtentRequest wanted(long offset, long length, int alignment) {
    return new ExtentRequest(new Extent(FILE, offset, length), alignment);
  }

  private static PlanLimits blocks(long request, long gap, long slab) {
    return new PlanLimits(request * BLOCK_BYTES, gap * BLOCK_BYTES, slab * BLOCK_BYTES);
  }

  @Test
  void nothingWantedIsNothingPlanned() {
    ReadPlan plan = Planner.plan(List.of(wanted(10, 0, 8)), PlanLimits.DEFAULT);
    assertThat(plan.reads()).isEmpty();
    assertThat(plan.slabSizes()).isEmpty();
    assertThat(plan.placements()).containsExactly(new Placement(Placement.NOWHERE, 0, 0));
  }

  @Test
  void alignsOutwardAndAsksForNoMoreThanIsWanted() {
    ReadPlan plan = Planner.plan(List.of(wanted(5000, 100, 4)), PlanLimits.DEFAULT);
    assertThat(plan.reads()).containsExactly(new Read(FILE, 4096, 4096, 1004, 0, 0));
    assertThat(plan.placements()).containsExactly(new Placement(0, 904, 100));
    assertThat(plan.slabSizes()).containsExactly(4096L);
  }

  @Test
  void relocatesWhatWouldBeMisaligned() {
    ReadPlan plan = Planner.plan(List.of(wanted(5001, 100, 4)), PlanLimits.DEFAULT);
    assertThat(plan.relocations()).containsExactly(new ReadPlan.Relocation(0, 905, 1, 0, 100));
    assertThat(plan.placements()).containsExactly(new Placement(1, 0, 100));
    assertThat(plan.slabSizes()).containsExactly(4096L, 4096L);
  }

  @Test
  void aShiftAlignsARunBehindAnOddHeader() {
    ReadPlan plan =
        Planner.plan(List.of(wanted(5001, 96, 2), wanted(5097, 8192, 2)), PlanLimits.DEFAULT, 16);
    assertThat(plan.reads()).containsExactly(new Read(FILE, 4096, 12288, 9193, 0, 7));
    assertThat(plan.placements())
        .containsExactly(new Placement(0, 912, 96), new Placement(0, 1008, 8192));
    assertThat(plan.relocations()).isEmpty();
    assertThat(plan.slabSizes()).containsExactly(12288L);
  }

  @Test
  void aShiftSuitsMostBytesAndWhatElementsNeedIsCopied() {
    ReadPlan plan =
        Planner.plan(
            List.of(wanted(0, 40, 8), wanted(42, 400, 2), wanted(442, 8, 2)),
            PlanLimits.DEFAULT,
            16);
    assertThat(plan.reads()).containsExactly(new Read(FILE, 0, 4096, 450, 0, 6));
    assertThat(plan.placements())
        .containsExactly(
            new Placement(1, 0, 40), new Placement(0, 48, 400), new Placement(0, 448, 8));
  }

  @Test
  void aShiftedRunFitsItsSlabToTheLastByte() {
    ReadPlan plan = Planner.plan(List.of(wanted(8, 4088, 2)), PlanLimits.DEFAULT, 16);
    assertThat(plan.placements()).containsExactly(new Placement(0, 16, 4088));
    assertThat(plan.slabSizes()).containsExactly(8192L);
  }

  @Test
  void slabsOfRelocatedExtentsAreWholeBlocksToo() {
    List<ExtentRequest> wanted = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      wanted.add(wanted(1 + i * 8192L, 5000, 8));
    }
    wanted.add(wanted(1 + 3 * 8192L, 300, 8));
    ReadPlan plan = Planner.plan(wanted, blocks(1, 0, 2));
    assertThat(plan.slabSizes()).allMatch(size -> size % BLOCK_BYTES == 0);
  }

  @Test
  void takesAGapOfTheLimitAndNoMore() {
    PlanLimits limits = blocks(64, 2, 64);
    assertThat(Planner.plan(List.of(wanted(0, 1, 1), wanted(3 * 4096, 1, 1)), limits).reads())
        .containsExactly(new Read(FILE, 0, 4 * 4096, 3 * 4096 + 1, 0, 0));
    assertThat(Planner.plan(List.of(wanted(0, 1, 1), wanted(4 * 4096, 1, 1)), limits).reads())
        .containsExactly(
            new Read(FILE, 0, 4096, 1, 0, 0), new Read(FILE, 4 * 4096, 4096, 1, 0, 4096));
  }

  @Test
  void overlapsAreReadOnce() {
    ReadPlan plan =
        Planner.plan(
            List.of(wanted(0, 8192, 1), wanted(0, 8192, 1), wanted(4000, 200, 1)),
            PlanLimits.DEFAULT);
    assertThat(plan.readBytes()).isEqualTo(8192);
    assertThat(plan.allocatedBytes()).isEqualTo(8192);
  }

  @Test
  void anExtentLargerThanASlabHasOneToItself() {
    ReadPlan plan =
        Planner.plan(
            List.of(wanted(0, 4096, 1), wanted(1 << 20, 20 * 4096, 1), wanted(2 << 20, 1, 1)),
            blocks(8, 0, 4));
    assertThat(plan.slabSizes()).containsExactly(4096L, 20 * 4096L, 4096L);
  }

  @ParameterizedTest
  @ValueSource(longs = {1 << 20, 8 << 20, 12_288})
  void manySmallNeighboursTakeAsFewReadsAsTheirBytes(long request) {
    List<ExtentRequest> wanted = new ArrayList<>();
    for (int i = 0; i < 20_000; i++) {
      wanted.add(wanted(4096 + i * 1000L, 1000, 8));
    }
    ReadPlan plan = Planner.plan(wanted, PlanLimits.DEFAULT.withRequestBytes(request));
    assertThat(plan.reads()).hasSize(Math.toIntExact(Math.ceilDiv(20_000L * 1000, request)));
    assertThat(plan.slabSizes()).hasSize(1);
    assertThat(plan.relocations()).isEmpty();
  }

  @Test
  void halfAMillionExtentsInTheWorstOrder() {
    int count = 500_000;
    List<ExtentRequest> wanted = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      // The factor and the count have no common divisor, so each offset comes once, far from the
      // offset before.
      wanted.add(wanted(i * 271_829L % count * 2048, 100, 8));
    }
    ReadPlan plan = Planner.plan(wanted, PlanLimits.DEFAULT);
    assertThat(plan.placements()).hasSize(count);
    assertThat(plan.readBytes()).isEqualTo(count / 2 * 4096L);
    assertThat(plan.reads()).hasSizeLessThan(200);
  }

  @Test
  void limitsAreWholeBlocks() {
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> new PlanLimits(2L << 30, 0, 4096));
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> new PlanLimits(4097, 0, 4096));
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> new PlanLimits(0, 0, 4096));
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> new PlanLimits(4096, -1, 4096));
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> new PlanLimits(4096, 0, 100));
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> wanted(0, 1, 3));
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> wanted(0, 1, 512));
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> wanted(0, 1, 0));
  }

  /// The shift by 8 bytes takes another block.
  @Test
  void aShiftedRunDoesNotExceedItsSlab() {
    ReadPlan plan =
        Planner.plan(List.of(wanted(8, 6000, 2), wanted(6008, 2184, 2)), blocks(1, 0, 2), 16);
    assertThat(plan.slabSizes()).allMatch(size -> size <= 2 * BLOCK_BYTES);
    assertThat(plan.placements()).extracting(placement -> placement.offset() % 16).containsOnly(0L);
  }
}
