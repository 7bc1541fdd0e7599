// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ReadIntoPlan.Piece;
import dev.gantry.core.internal.plan.ReadIntoPlan.Step;
import dev.gantry.core.spi.Copy2D;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/// Every byte of every range is in one piece of one aligned read, and every read has a wanted
/// byte.
class ReadIntoPlanPropertyTest {
  /// Returns a range of one row, whose pitch does not matter, or of several rows at any pitch.
  private static StridedRange range(Random random, long target) {
    long width = 1 + random.nextLong(1L << random.nextInt(18));
    long rows = random.nextBoolean() ? 1 : 1 + random.nextInt(40);
    long pitch =
        rows == 1 ? random.nextLong(2 * width) : width + random.nextLong(1L << random.nextInt(18));
    long offset = random.nextLong(1L << (10 + random.nextInt(14)));
    return new StridedRange(
        Location.of(Path.of("file" + random.nextInt(3))),
        new Copy2D(offset, pitch, target, width + random.nextInt(9), width, rows));
  }

  @Property(tries = 500)
  void everyByteComesOnce(@ForAll long seed) {
    Random random = new Random(seed);
    List<List<StridedRange>> parts = new ArrayList<>();
    for (int i = random.nextInt(30); i >= 0; i--) {
      parts.add(random.nextInt(9) == 0 ? List.of() : List.of(range(random, random.nextInt(99))));
    }
    PlanLimits limits =
        new PlanLimits(4096L << random.nextInt(6), random.nextInt(100_000), 1 << 20);

    ReadIntoPlan plan = Planner.planInto(parts, limits);

    List<List<long[]>> covered = new ArrayList<>();
    parts.forEach(_ -> covered.add(new ArrayList<>()));
    for (Step step : plan.steps()) {
      assertThat(step.read().fileOffset() % 4096).isZero();
      assertThat(step.read().length() % 4096).isZero();
      assertThat(step.read().length()).isBetween(4096L, limits.requestBytes());
      assertThat(step.read().length() - step.read().required()).isBetween(0L, 4095L);
      assertThat(step.pieces()).isNotEmpty();
      for (Piece piece : step.pieces()) {
        StridedRange range = parts.get(piece.part()).getFirst();
        assertThat(range.file()).isEqualTo(step.read().file());
        assertThat(piece.rows().sourceEnd()).isLessThanOrEqualTo(step.read().required());
        for (long row = 0; row < piece.rows().rows(); row++) {
          long from = step.read().fileOffset() + piece.rows().source();
          covered
              .get(piece.part())
              .add(
                  new long[] {
                    from + row * piece.rows().sourcePitch(),
                    piece.rows().target() + row * piece.rows().targetPitch(),
                    piece.rows().width()
                  });
        }
      }
    }
    for (int part = 0; part < parts.size(); part++) {
      List<long[]> pieces = covered.get(part);
      pieces.sort(Comparator.comparingLong(piece -> piece[0]));
      int next = 0;
      for (StridedRange range : parts.get(part)) {
        Copy2D all = range.rows();
        for (long row = 0; row < all.rows(); row++) {
          long done = 0;
          while (done < all.width()) {
            long[] piece = pieces.get(next++);
            assertThat(piece[0]).isEqualTo(all.source() + row * all.sourcePitch() + done);
            assertThat(piece[1]).isEqualTo(all.target() + row * all.targetPitch() + done);
            done += piece[2];
          }
          assertThat(done).as("seed %d", seed).isEqualTo(all.width());
        }
      }
      assertThat(next).isEqualTo(pieces.size());
    }
  }

  @Property(tries = 200)
  void whatOverlapsIsReadOnce(@ForAll long seed) {
    Random random = new Random(seed);
    List<List<StridedRange>> parts = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      Extent extent =
          new Extent(Path.of("file"), random.nextInt(100_000), 1 + random.nextInt(100_000));
      parts.add(List.of(StridedRange.of(extent, 0)));
    }
    long end = -1;
    for (Step step : Planner.planInto(parts, PlanLimits.DEFAULT.withRequestBytes(8192)).steps()) {
      assertThat(step.read().fileOffset()).isGreaterThanOrEqualTo(end);
      end = step.read().fileOffset() + step.read().length();
    }
  }
}
