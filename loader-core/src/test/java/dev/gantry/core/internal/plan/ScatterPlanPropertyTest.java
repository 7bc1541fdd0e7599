// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Extent;
import dev.gantry.core.internal.plan.ScatterPlan.Piece;
import dev.gantry.core.internal.plan.ScatterPlan.Step;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/// Every byte of every extent is in one piece of one aligned read, and no read is for nothing.
class ScatterPlanPropertyTest {
  @Property(tries = 500)
  void everyByteComesOnce(@ForAll long seed) {
    Random random = new Random(seed);
    List<Extent> extents = new ArrayList<>();
    for (int i = random.nextInt(30); i >= 0; i--) {
      extents.add(
          new Extent(
              Path.of("file" + random.nextInt(3)),
              random.nextLong(1L << (10 + random.nextInt(14))),
              random.nextLong(1L << random.nextInt(18))));
    }
    PlanLimits limits =
        new PlanLimits(4096L << random.nextInt(6), random.nextInt(100_000), 1 << 20);

    ScatterPlan plan = ScatterPlan.of(extents, limits);

    long[] covered = new long[extents.size()];
    for (Step step : plan.steps()) {
      assertThat(step.read().fileOffset() % 4096).isZero();
      assertThat(step.read().length() % 4096).isZero();
      assertThat(step.read().length()).isBetween(4096L, limits.requestBytes());
      assertThat(step.read().length() - step.read().required()).isBetween(0L, 4095L);
      assertThat(step.pieces()).isNotEmpty();
      for (Piece piece : step.pieces()) {
        Extent extent = extents.get(piece.part());
        assertThat(extent.file()).isEqualTo(step.read().file());
        assertThat(step.read().fileOffset() + piece.offset())
            .isEqualTo(extent.offset() + piece.partOffset());
        assertThat(piece.partOffset()).as("in order").isEqualTo(covered[piece.part()]);
        assertThat(piece.length()).isPositive();
        assertThat(piece.offset()).isNotNegative();
        assertThat(piece.offset() + piece.length()).isLessThanOrEqualTo(step.read().required());
        covered[piece.part()] += piece.length();
      }
    }
    for (int i = 0; i < covered.length; i++) {
      assertThat(covered[i]).as("seed %d", seed).isEqualTo(extents.get(i).length());
    }
  }

  @Property(tries = 200)
  void whatOverlapsIsReadOnce(@ForAll long seed) {
    Random random = new Random(seed);
    List<Extent> extents = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      extents.add(new Extent(Path.of("file"), random.nextInt(100_000), random.nextInt(100_000)));
    }
    long end = -1;
    for (Step step : ScatterPlan.of(extents, PlanLimits.DEFAULT.withRequestBytes(8192)).steps()) {
      assertThat(step.read().fileOffset()).isGreaterThanOrEqualTo(end);
      end = step.read().fileOffset() + step.read().length();
    }
  }
}
