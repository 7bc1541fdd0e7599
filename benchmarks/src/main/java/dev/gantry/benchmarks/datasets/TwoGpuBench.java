// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.benchmarks.harness.Pause;
import dev.gantry.core.Device;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.batches.EpochChain;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/// Random samples that the kernels of two GPUs fetch at once, from files that are registered once:
/// `TwoGpuBench FOLDER BYTES`. Copies from pinned memory beside.
public final class TwoGpuBench {
  private static final int RUNS = 3;
  private static final int BATCH_SIZE = 256;
  private static final int SLOTS = 3;
  private static final long COPY_BYTES = 256L << 20;
  private static final int COPIES = 60;
  private static final List<Device.Cuda> DEVICES = List.of(new Device.Cuda(0), new Device.Cuda(1));

  private final GantrySession session;
  private final ImageSamples samples;

  private TwoGpuBench(GantrySession session, ImageSamples samples) {
    this.session = session;
    this.samples = samples;
  }

  /// Work of one device; returns GB/s.
  @FunctionalInterface
  private interface Work {
    double run(Device.Cuda device);
  }

  public static void main(String[] arguments) throws IOException {
    try (GantrySession session = GantrySession.open()) {
      ImageSamples samples =
          ImageSamples.in(Path.of(arguments[0]), Long.parseLong(arguments[1]), session);
      new TwoGpuBench(session, samples).run();
    }
  }

  private void run() {
    samples.warm();
    double fetched = 0;
    double copied = 0;
    for (int i = 0; i < RUNS; i++) {
      copied = Math.max(copied, atOnce("copies from pinned memory", TwoGpuBench::copies));
      fetched = Math.max(fetched, atOnce("single samples, mapped", this::epochs));
    }
    System.out.printf(
        Locale.ROOT, "two GPUs\tbest of %d: %.2f of both links%n", RUNS, fetched / copied);
    atOnce("single samples, mapped, every value compared", this::check);
  }

  /// Each device by itself, then both at once.
  ///
  /// @return GB/s of both together
  private static double atOnce(String label, Work work) {
    StringBuilder alone = new StringBuilder();
    for (Device.Cuda device : DEVICES) {
      Pause.take();
      alone.append(String.format(Locale.ROOT, "%.1f ", work.run(device)));
    }
    Pause.take();
    List<Double> rates = new ArrayList<>();
    try (ExecutorService threads = Executors.newFixedThreadPool(DEVICES.size())) {
      List<Future<Double>> all = new ArrayList<>();
      DEVICES.forEach(device -> all.add(threads.submit(() -> work.run(device))));
      for (Future<Double> each : all) {
        rates.add(each.get());
      }
    } catch (InterruptedException | ExecutionException e) {
      throw new IllegalStateException(label + " failed", e);
    }
    double both = rates.stream().mapToDouble(Double::doubleValue).sum();
    System.out.printf(
        Locale.ROOT,
        "two GPUs\t%s\t%.1f and %.1f GB/s at once, %.1f together; each by itself: %sGB/s%n",
        label,
        rates.getFirst(),
        rates.getLast(),
        both,
        alone);
    return both;
  }

  private static double copies(Device.Cuda device) {
    CudaContext context = CudaContext.of(device);
    PinnedSlab from = PinnedSlab.allocate(context, COPY_BYTES);
    DeviceSlab to = DeviceSlab.allocate(context, COPY_BYTES);
    try (var _ = context.enter()) {
      long start = System.nanoTime();
      for (int i = 0; i < COPIES; i++) {
        context
            .driver()
            .copyToDevice(to.address(), from.address(), COPY_BYTES, CudaDriver.Stream.DEFAULT);
      }
      context.driver().synchronize(CudaDriver.Stream.DEFAULT);
      return rate(COPIES * COPY_BYTES, start);
    } finally {
      to.release();
      from.release();
    }
  }

  private static double rate(long bytes, long start) {
    return (double) bytes / (System.nanoTime() - start);
  }

  private double epochs(Device.Cuda device) {
    return epochs(device, DatasetBench.EPOCHS, _ -> {});
  }

  private double check(Device.Cuda device) {
    BatchCheck check = new BatchCheck();
    double rate = epochs(device, 1, check::batch);
    System.out.printf("two GPUs\tchecked\t%s on %s%n", check.summary(), device);
    return rate;
  }

  @FunctionalInterface
  private interface BatchWork {
    void run(RingBatch<BatchView> batch);
  }

  private double epochs(Device.Cuda device, int count, BatchWork work) {
    TransferOptions mapped =
        DatasetBench.transfer(EpochBatches.LIMITS).withTransport(Transport.MAPPED);
    long start = System.nanoTime();
    try (Batches batches =
        samples.batches(
            ImageSamples.order(BATCH_SIZE, new Shuffle.Samples(device.ordinal())),
            EpochBatches.LIMITS)) {
      RingOptions options = DatasetBench.options(device, batches, SLOTS, mapped, false);
      try (PrefetchRing<BatchView> ring =
          session.ring(options, new EpochChain(batches, batches.start(), count - 1))) {
        long bytes = 0;
        for (var next = ring.next(); next.isPresent(); next = ring.next()) {
          try (RingBatch<BatchView> batch = next.get()) {
            bytes += DatasetBench.bytes(batch.label());
            work.run(batch);
          }
        }
        return rate(bytes, start);
      }
    }
  }
}
