// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.benchmarks.page.Chart;
import dev.gantry.benchmarks.page.Page;
import dev.gantry.core.Device;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.EpochChain;
import dev.gantry.formats.internal.batches.FieldView;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/// A loop with a kernel a batch, which takes as long as reading the batch does: how long the loop
/// takes, from opening the ring to the last kernel's end, beside the kernels alone.
final class OverlapBench {
  /// The first batch that is shown: at that one the loop has found its pace.
  private static final int FIRST_SHOWN = 100;

  private static final int SHOWN = 14;
  private static final List<String> ROWS =
      List.of("reading even batches", "reading odd batches", "kernels");

  private final GantrySession session;
  private final Device device;
  private final BusyKernel kernel;

  OverlapBench(GantrySession session, Device device, BusyKernel kernel) {
    this.session = session;
    this.device = device;
    this.kernel = kernel;
  }

  /// Two slots and more. The kernel takes as long as a batch's share of a loop without one.
  ///
  /// @param folder where pages with timelines go, as `timeline-….html`
  void run(String label, Batches batches, Path folder) throws IOException {
    try (batches) {
      long count = batches.batchesPerEpoch().orElseThrow() * DatasetBench.EPOCHS;
      var _ = new Loop(batches, 2, 0).run();
      long perBatch = new Loop(batches, 2, 0).run() / count;
      for (int slots = 2; slots <= 4; slots++) {
        long start = System.nanoTime();
        kernel.alone(count, perBatch);
        long kernels = System.nanoTime() - start;
        Loop loop = new Loop(batches, slots, perBatch);
        long nanos = loop.run();
        System.out.printf(
            Locale.ROOT,
            "gantry overlap, %s, %d slots\thot\t%.3f x kernels alone\t%d kernels of %.3f ms; loop"
                + " %.1f ms, kernels alone %.1f ms%n",
            label,
            slots,
            (double) nanos / kernels,
            count,
            perBatch / 1e6,
            nanos / 1e6,
            kernels / 1e6);
        String name = "timeline-" + label.replace(' ', '-') + "-" + slots + ".html";
        Files.writeString(folder.resolve(name), Page.of(loop.timeline(label)));
      }
    }
  }

  /// The times of one batch.
  ///
  /// @param asked when it was asked of the source, in milliseconds from the loop's start
  /// @param ready when `next` returned it
  private record Step(
      double asked, double ready, BusyKernel.Moment kernelBegin, BusyKernel.Moment kernelEnd) {}

  /// One pass over all batches.
  private final class Loop implements BatchPlanSource<BatchView> {
    private final Batches batches;
    private final int slots;
    private final long kernelNanos;
    private final EpochChain source;

    /// When each batch was asked of the source, in milliseconds from the loop's start.
    private final Queue<Double> asked = new ConcurrentLinkedQueue<>();

    private final List<Step> steps = new ArrayList<>();
    private final BusyKernel.Moment begin = kernel.mark();
    private final long start;

    /// @param kernelNanos of the kernel of each batch, or 0 for none
    Loop(Batches batches, int slots, long kernelNanos) {
      this.batches = batches;
      this.slots = slots;
      this.kernelNanos = kernelNanos;
      source = new EpochChain(batches, batches.start(), DatasetBench.EPOCHS - 1);
      kernel.await();
      start = System.nanoTime();
    }

    @Override
    public Optional<BatchPlan<BatchView>> next() {
      asked.add(milliseconds());
      return source.next();
    }

    @Override
    public void close() {
      source.close();
    }

    private double milliseconds() {
      return (System.nanoTime() - start) / 1e6;
    }

    /// @return nanoseconds
    long run() {
      try (PrefetchRing<BatchView> ring =
          session.ring(
              new Epochs(session, device, slots, Epochs.TRANSFER, DatasetBench.EPOCHS)
                  .options(batches, false),
              this)) {
        for (var next = ring.next(); next.isPresent(); next = ring.next()) {
          double ready = milliseconds();
          try (RingBatch<BatchView> batch = next.get()) {
            if (kernelNanos > 0) {
              FieldView image = batch.label().fields().getFirst();
              long bytes = (image.shape().dimension(0) - 1) * image.strides().getFirst();
              long address = batch.region(image.offset(), bytes).address();
              BusyKernel.Moment before = kernel.mark();
              kernel.launch(address, bytes, kernelNanos);
              steps.add(new Step(asked.remove(), ready, before, kernel.mark()));
            }
          }
        }
        kernel.await();
        return System.nanoTime() - start;
      }
    }

    /// When batches were read, one line for the even ones and one for the odd, above the kernels that used them.
    Chart timeline(String title) {
      int first = Math.clamp(steps.size() - SHOWN, 0, FIRST_SHOWN);
      List<Step> shown = steps.subList(first, Math.min(steps.size(), first + SHOWN));
      double start = shown.getFirst().asked();
      List<Chart.Box> boxes = new ArrayList<>();
      for (int i = 0; i < shown.size(); i++) {
        Step step = shown.get(i);
        boxes.add(
            new Chart.Box(ROWS.get(i % 2), Chart.OURS, step.asked() - start, step.ready() - start));
        boxes.add(
            new Chart.Box(
                ROWS.get(2),
                Chart.PEER,
                step.kernelBegin().since(begin) - start,
                step.kernelEnd().since(begin) - start));
      }
      return new Chart.Timeline(title, ROWS, boxes);
    }
  }
}
