// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.EpochChain;
import java.nio.file.Path;
import java.util.Optional;
import java.util.function.Supplier;

/// Measures the CPU's time for planning batches of 8,192 samples of 4 KiB in random order, which a kernel
/// gathers: `PlanBench FOLDER`. A run plans 1,000 batches.
public final class PlanBench {
  private static final int SAMPLES = 60_000;
  private static final int BATCH_SIZE = 8192;
  private static final int PLANS = 1000;
  private static final int TURNS = 7;

  private PlanBench() {}

  public static void main(String[] arguments) throws Exception {
    try (GantrySession session = GantrySession.open()) {
      Samples samples =
          new Samples(
              session,
              Path.of(arguments[0]),
              "plan-pages",
              TensorShape.of(4096),
              SAMPLES,
              BATCH_SIZE);
      try (Batches batches = samples.batches(Samples.Kind.SHARDS, new Shuffle.Samples(1))) {
        new Comparison("plans", PLANS * BATCH_SIZE * 4096L)
            .samples((long) PLANS * BATCH_SIZE)
            .add("planned", () -> plan(batches, false))
            .add("planned and checked", () -> plan(batches, true))
            .print(TURNS);
      }
    }
  }

  private static void plan(Batches batches, boolean check) {
    try (BatchPlanSource<BatchView> source = new EpochChain(batches, batches.start(), PLANS - 1)) {
      for (int i = 0; i < PLANS; i++) {
        Optional<BatchPlan<BatchView>> plan = source.nextGathered().map(Supplier::get);
        if (check) {
          plan.orElseThrow().requireFits(0, batches.slotBytes(), 4 << 20, 0);
        }
      }
    }
  }
}
