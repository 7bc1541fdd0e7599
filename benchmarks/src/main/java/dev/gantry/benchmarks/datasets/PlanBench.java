// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.core.Device;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.batches.EpochChain;
import dev.gantry.formats.shards.ShardSet;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.LongStream;
import jdk.jfr.consumer.RecordingStream;

/// What planning costs the CPU of batches of 8,192 samples of 4 KiB in random order, which a kernel gathers:
/// `PlanBench FOLDER [DEVICE]`. With a device, also what comes between asking for a plan and launching the
/// kernel.
public final class PlanBench {
  private static final int PAGES = 60_000;
  private static final int BATCH_SIZE = 8192;
  private static final int EPOCHS = 1000;
  private static final int WARM_UP = 2000;

  private PlanBench() {}

  public static void main(String[] arguments) {
    Path folder = Path.of(arguments[0]).resolve("plan-pages");
    try (GantrySession session = GantrySession.open()) {
      ImageSamples.writePages(folder, PAGES, session);
      try (Batches batches =
          EpochBatches.of(
              ShardSet.open(folder).catalogue(List.of("page")),
              ImageSamples.order(BATCH_SIZE, new Shuffle.Samples(1)),
              EpochBatches.LIMITS)) {
        plans(batches);
        if (arguments.length > 1) {
          ring(session, Device.parse(arguments[1]), batches);
        }
      }
    }
  }

  private static void plans(Batches batches) {
    ConcurrentLinkedQueue<Long> planned = new ConcurrentLinkedQueue<>();
    ConcurrentLinkedQueue<Long> checked = new ConcurrentLinkedQueue<>();
    try (BatchPlanSource<BatchView> source = new EpochChain(batches, batches.start(), EPOCHS - 1)) {
      while (true) {
        long start = System.nanoTime();
        Optional<BatchPlan<BatchView>> plan = source.nextGathered().map(Supplier::get);
        if (plan.isEmpty()) {
          break;
        }
        planned.add(System.nanoTime() - start);
        start = System.nanoTime();
        plan.get().requireFits(0, batches.slotBytes(), 4 << 20, 0);
        checked.add(System.nanoTime() - start);
      }
    }
    print("planned", planned);
    print("checked", checked);
  }

  private static void ring(GantrySession session, Device device, Batches batches) {
    ConcurrentLinkedQueue<Long> prepared = new ConcurrentLinkedQueue<>();
    Consumer<jdk.jfr.consumer.RecordedEvent> action =
        event -> prepared.add(event.getDuration("prepared").toNanos());
    TransferOptions mapped =
        DatasetBench.transfer(EpochBatches.LIMITS).withTransport(Transport.MAPPED);
    try (RecordingStream events = new RecordingStream()) {
      events.enable("dev.gantry.RingBatch");
      events.onEvent("dev.gantry.RingBatch", action);
      events.startAsync();
      long start = System.nanoTime();
      long count = 0;
      try (PrefetchRing<BatchView> ring =
          session.ring(
              DatasetBench.options(device, batches, 3, mapped, false),
              new EpochChain(batches, batches.start(), EPOCHS - 1))) {
        for (var next = ring.next(); next.isPresent(); next = ring.next()) {
          try (RingBatch<BatchView> _ = next.get()) {
            count++;
          }
        }
      }
      double seconds = (System.nanoTime() - start) / 1e9;
      events.stop();
      System.out.printf(
          Locale.ROOT,
          "ring on %s: %.2f GB/s%n",
          device,
          count * BATCH_SIZE * 4096.0 / 1e9 / seconds);
    }
    print("planned, checked, tables written, launched", prepared);
  }

  private static void print(String what, Iterable<Long> nanos) {
    LongStream.Builder all = LongStream.builder();
    nanos.forEach(all::add);
    long[] warm = all.build().skip(WARM_UP).sorted().toArray();
    System.out.printf(
        Locale.ROOT,
        "%s: median %.0f µs a batch of %d samples, %.0f µs at most for 9 of 10 (%d batches)%n",
        what,
        warm[warm.length / 2] / 1e3,
        BATCH_SIZE,
        warm[warm.length * 9 / 10] / 1e3,
        Arrays.stream(warm).count());
  }
}
