// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.LinkCeiling;
import dev.gantry.benchmarks.harness.Threads;
import dev.gantry.benchmarks.harness.Turns;
import dev.gantry.core.Device;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.PageCache;
import dev.gantry.formats.Shuffle;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Measures random samples that the kernels of two GPUs fetch at the same time from files that are
/// registered once: `TwoGpuBench FOLDER BYTES`. The bench compares them with copies from pinned
/// memory.
public final class TwoGpuBench {
  private static final int TURNS = 3;
  private static final int SLOTS = 3;
  private static final int COPIES = 30;
  private static final int GPUS = 2;

  private TwoGpuBench() {}

  public static void main(String[] arguments) throws Exception {
    try (GantrySession session = GantrySession.open()) {
      Samples samples =
          Samples.photos(session, Path.of(arguments[0]), Long.parseLong(arguments[1]));
      samples.files(Samples.Kind.SHARDS).forEach(PageCache::warm);
      List<Contender> links = new ArrayList<>();
      for (int gpu = 0; gpu < GPUS; gpu++) {
        links.add(LinkCeiling.of(new Device.Cuda(gpu), true));
      }
      compare(
          "copies from pinned memory",
          COPIES * LinkCeiling.BYTES,
          gpu -> {
            for (int i = 0; i < COPIES; i++) {
              double _ = links.get(gpu).run();
            }
          });
      links.forEach(Contender::close);
      compare(
          "single samples, mapped",
          samples.bytes() * DatasetBench.EPOCHS,
          gpu -> {
            long _ =
                epochs(session, gpu, DatasetBench.EPOCHS)
                    .run(() -> samples.batches(Samples.Kind.SHARDS, new Shuffle.Samples(gpu)));
          });
      try (Threads threads = new Threads(GPUS)) {
        threads.run(gpu ->
            epochs(session, gpu, 1)
                .check(
                    "GPU " + gpu,
                    () -> samples.batches(Samples.Kind.SHARDS, new Shuffle.Samples(gpu)),
                    samples));
      }
    }
  }

  private static Epochs epochs(GantrySession session, int gpu, int count) {
    return new Epochs(
        session,
        new Device.Cuda(gpu),
        SLOTS,
        Epochs.TRANSFER.withTransport(Transport.MAPPED),
        count);
  }

  /// Runs the work on each device alone, then on both at once. Rates count one device's bytes in
  /// the first case, and both devices' bytes in the second.
  private static void compare(String title, long bytes, Threads.Part work) throws Exception {
    Comparison alone = new Comparison(title, bytes).before(Turns::pause);
    for (int gpu = 0; gpu < GPUS; gpu++) {
      int one = gpu;
      alone.add("GPU " + gpu, () -> work.run(one));
    }
    alone.print(TURNS);
    try (Threads threads = new Threads(GPUS)) {
      new Comparison(title + ", at once", GPUS * bytes)
          .before(Turns::pause)
          .add("both GPUs", () -> threads.run(work))
          .print(TURNS);
    }
  }
}
