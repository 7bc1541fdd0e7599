// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.benchmarks.harness.Pause;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.ring.RingStatistics;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.batches.EpochChain;
import dev.gantry.formats.internal.batches.FieldView;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.shards.ShardSet;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.function.Supplier;

/// How fast batches come into a device's memory:
/// `datasets DEVICE rows|random|streams|first|sweep|overlap FOLDER BYTES [PTX]`.
///
/// Makes samples of random bytes in `FOLDER` where they are not there. A run counts from the call
/// that opens the dataset to the last batch's arrival, of three epochs in one ring where the page
/// cache is hot, else of one; nothing is done with the batches. With the kernel of `busy.cu`,
/// `overlap` shows how far reading and computing go on at once.
public final class DatasetBench {
  private static final int RUNS = 3;
  private static final int BATCH_SIZE = 256;

  private static final int PAGES = 500_000;
  private static final int PAGES_IN_BATCH = 8192;

  /// The epochs of a run in a hot page cache.
  static final int EPOCHS = 3;

  private static final Shuffle FILE_ORDER = new Shuffle.None();

  private final GantrySession session;
  private final Device device;
  private final ImageSamples samples;

  private DatasetBench(GantrySession session, Device device, ImageSamples samples) {
    this.session = session;
    this.device = device;
    this.samples = samples;
  }

  public static void main(String[] arguments) throws IOException {
    Device device = Device.parse(arguments[0]);
    Path folder = Path.of(arguments[2]);
    try (GantrySession session = GantrySession.open()) {
      ImageSamples samples = ImageSamples.in(folder, Long.parseLong(arguments[3]), session);
      DatasetBench bench = new DatasetBench(session, device, samples);
      switch (arguments[1]) {
        case "rows" -> bench.rows();
        case "random" -> bench.random();
        case "first" -> bench.first();
        case "streams" -> {
          bench.samples.warm();
          bench.streams();
        }
        case "sweep" -> bench.sweep();
        case "overlap" -> bench.overlap(folder, Path.of(arguments[4]));
        default -> throw new IllegalArgumentException(arguments[1]);
      }
    }
  }

  private Batches shards(Shuffle shuffle, PlanLimits limits) {
    return samples.batches(ImageSamples.order(BATCH_SIZE, shuffle), limits);
  }

  private Batches indexed(Shuffle shuffle, PlanLimits limits) {
    return samples.indexed(ImageSamples.order(BATCH_SIZE, shuffle), limits);
  }

  private Batches streamed(Shuffle shuffle) {
    return samples.streamed(ImageSamples.order(BATCH_SIZE, shuffle));
  }

  private void rows() {
    PlanLimits limits = EpochBatches.LIMITS;
    cold("raw shards", () -> shards(FILE_ORDER, limits));
    cold("TFRecord by index", () -> indexed(FILE_ORDER, limits));
    cold("TFRecord as stream", () -> streamed(FILE_ORDER));
    samples.warm();
    for (int slots = 2; slots <= 4; slots++) {
      String label = "\thot\tfile order, " + slots + " slots";
      hot("raw shards" + label, slots, () -> shards(FILE_ORDER, limits));
      hot("TFRecord by index" + label, slots, () -> indexed(FILE_ORDER, limits));
    }
    check("raw shards", () -> shards(FILE_ORDER, limits));
    check("TFRecord by index", () -> indexed(FILE_ORDER, limits));
    for (Shuffle.Blocks order : List.of(new Shuffle.Blocks(1, 32), new Shuffle.Blocks(1, 1))) {
      String label = "\thot\tblocks of %d, 3 slots".formatted(order.samples());
      hot("raw shards" + label, 3, () -> shards(order, limits));
      hot("TFRecord by index" + label, 3, () -> indexed(order, limits));
      check("raw shards" + label, () -> shards(order, limits));
      check("TFRecord by index" + label, () -> indexed(order, limits));
    }
    random();
    streams();
  }

  /// Without an index: read, checked and decoded by the CPU.
  private void streams() {
    for (int slots = 2; slots <= 4; slots++) {
      hot(
          "TFRecord as stream\thot\tfile order, " + slots + " slots",
          slots,
          () -> streamed(FILE_ORDER));
    }
    Shuffle buffer = new Shuffle.Samples(1);
    hot("TFRecord as stream\thot\tshuffle buffer, 3 slots", 3, () -> streamed(buffer));
    check("TFRecord as stream", () -> streamed(FILE_ORDER));
    check("TFRecord as stream, shuffle buffer", () -> streamed(buffer));
  }

  /// Single samples in random order: read by the CPU, and fetched by the GPU.
  private void random() {
    samples.warm();
    PlanLimits limits = EpochBatches.LIMITS;
    Shuffle.Blocks single = new Shuffle.Blocks(1, 1);
    for (Transport transport : List.of(Transport.STAGED, Transport.MAPPED)) {
      TransferOptions only = transfer(limits).withTransport(transport);
      String label = "\thot, " + transport + "\tsingle samples, 3 slots";
      for (int i = 0; i < RUNS; i++) {
        run("raw shards" + label, EPOCHS, 3, only, () -> shards(single, limits));
        run("TFRecord by index" + label, EPOCHS, 3, only, () -> indexed(single, limits));
        normalized(label, only, single, limits);
      }
      new NormalizeBench(session, samples, transport).run(device);
    }
    check("raw shards, single samples", () -> shards(single, limits));
    Path pages = samples.shards().resolveSibling("pages");
    ImageSamples.writePages(pages, PAGES, session);
    Supplier<Batches> shuffled =
        () ->
            EpochBatches.of(
                ShardSet.open(pages).catalogue(List.of("page")),
                ImageSamples.order(PAGES_IN_BATCH, single),
                limits);
    String label = "raw shards\thot, %s\tsingle samples of 4 KiB, 3 slots";
    // A read of each takes the CPU so long that one epoch shows it.
    run(
        label.formatted("staged"),
        1,
        3,
        transfer(limits).withTransport(Transport.STAGED),
        shuffled);
    for (int i = 0; i < RUNS; i++) {
      TransferOptions mapped = transfer(limits).withTransport(Transport.MAPPED);
      run(label.formatted("mapped"), EPOCHS, 3, mapped, shuffled);
    }
  }

  /// GB/s of what is read.
  private void normalized(String label, TransferOptions only, Shuffle shuffle, PlanLimits limits) {
    OrderOptions order = ImageSamples.order(BATCH_SIZE, shuffle);
    for (DType to : List.of(DType.F32, DType.F16)) {
      String ofType = label + ", normalised to " + to;
      run("raw shards" + ofType, EPOCHS, 3, only, () -> samples.normalized(order, limits, to));
      run(
          "TFRecord by index" + ofType + ", channels first",
          EPOCHS,
          3,
          only,
          () -> samples.normalizedChannelsFirst(order, limits, to));
    }
  }

  /// How long each of three epochs takes to its first batch, with a ring for each, as a dataset that is
  /// iterated three times.
  private void first() {
    samples.warm();
    PlanLimits limits = EpochBatches.LIMITS;
    first("raw shards", () -> shards(FILE_ORDER, limits));
    first("raw shards, single samples", () -> shards(new Shuffle.Blocks(1, 1), limits));
    first("TFRecord by index", () -> indexed(FILE_ORDER, limits));
  }

  private void first(String label, Supplier<Batches> opener) {
    for (int i = 0; i < RUNS; i++) {
      session.freeIdle();
      Pause.take();
      try (Batches batches = opener.get()) {
        for (int epoch = 1; epoch <= EPOCHS; epoch++) {
          first(label + "\thot\tepoch " + epoch, batches);
        }
      }
    }
  }

  private void first(String label, Batches batches) {
    RingOptions options = options(device, batches, 3, transfer(EpochBatches.LIMITS), false);
    long start = System.nanoTime();
    double first = 0;
    double end;
    try (PrefetchRing<BatchView> ring = session.ring(options, batches.from(batches.start()))) {
      double opened = seconds(start);
      for (var next = ring.next(); next.isPresent(); next = ring.next()) {
        try (RingBatch<BatchView> batch = next.get()) {
          first = batch.number() == 0 ? seconds(start) : first;
        }
      }
      end = seconds(start);
      System.out.printf(
          Locale.ROOT,
          "gantry %s\tfirst batch after %.2f ms, of which %.2f opened the ring; epoch %.1f ms",
          label,
          first * 1e3,
          opened * 1e3,
          end * 1e3);
    }
    System.out.printf(Locale.ROOT, "; closed in %.2f ms%n", (seconds(start) - end) * 1e3);
  }

  private void cold(String label, Supplier<Batches> batches) {
    for (int i = 0; i < 2 && samples.drop(); i++) {
      run(label + "\tcold\tfile order", 1, 2, transfer(EpochBatches.LIMITS), batches);
    }
  }

  private void hot(String label, int slots, Supplier<Batches> batches) {
    for (int i = 0; i < RUNS; i++) {
      run(label, EPOCHS, slots, transfer(EpochBatches.LIMITS), batches);
    }
  }

  /// Readers, request sizes and slots, to choose the defaults by.
  private void sweep() {
    samples.warm();
    for (int threads : new int[] {6, 8, 10, 12}) {
      for (int mib : new int[] {2, 4, 8}) {
        PlanLimits limits = EpochBatches.LIMITS.withRequestBytes((long) mib << 20);
        TransferOptions transfer = transfer(limits).withThreads(threads);
        for (int slots = 2; slots <= 4; slots++) {
          String label = "\thot\t%d readers x %d MiB, %d slots".formatted(threads, mib, slots);
          run("raw shards" + label, EPOCHS, slots, transfer, () -> shards(FILE_ORDER, limits));
          run("TFRecord" + label, EPOCHS, slots, transfer, () -> indexed(FILE_ORDER, limits));
        }
      }
    }
  }

  private void overlap(Path folder, Path code) throws IOException {
    samples.warm();
    if (device instanceof Device.Cuda cuda) {
      try (BusyKernel kernel = new BusyKernel(CudaContext.of(cuda), code)) {
        OverlapBench bench = new OverlapBench(session, device, kernel);
        bench.run("raw shards", shards(FILE_ORDER, EpochBatches.LIMITS), folder);
        bench.run("TFRecord by index", indexed(FILE_ORDER, EpochBatches.LIMITS), folder);
      }
    }
  }

  private void run(
      String label, int epochs, int slots, TransferOptions transfer, Supplier<Batches> opener) {
    Pause.take();
    long start = System.nanoTime();
    try (Batches batches = opener.get()) {
      long perEpoch = epochs == 1 ? 0 : batches.batchesPerEpoch().orElse(0);
      try (PrefetchRing<BatchView> ring =
          session.ring(
              options(device, batches, slots, transfer, false),
              new EpochChain(batches, batches.start(), epochs - 1))) {
        long bytes = 0;
        double first = 0;
        double epoch = 0;
        for (var next = ring.next(); next.isPresent(); next = ring.next()) {
          try (RingBatch<BatchView> batch = next.get()) {
            bytes += bytesRead(batch.label());
            first = batch.number() == 0 ? seconds(start) : first;
            epoch = batch.number() == perEpoch - 1 ? bytes / 1e9 / seconds(start) : epoch;
          }
        }
        double seconds = seconds(start);
        RingStatistics statistics = ring.statistics();
        System.out.printf(
            Locale.ROOT,
            "gantry %s\t%.2f GB/s by %s\t%s%d batches of %.1f MB, %d reads; first batch after %.1f"
                + " ms; waited for %d batches, %.0f %% of the time%n",
            label,
            bytes / 1e9 / seconds,
            statistics.transfer().bytesByTransport(),
            epoch == 0 ? "" : String.format(Locale.ROOT, "first epoch %.2f GB/s; ", epoch),
            statistics.batches(),
            bytes / 1e6 / statistics.batches(),
            statistics.transfer().reads(),
            first * 1e3,
            statistics.waits(),
            100.0 * statistics.waited().toNanos() / 1e9 / seconds);
      }
    }
  }

  private static double seconds(long start) {
    return (System.nanoTime() - start) / 1e9;
  }

  /// Compares every value of every batch with what was written.
  private void check(String label, Supplier<Batches> opener) {
    try (Batches batches = opener.get();
        PrefetchRing<BatchView> ring =
            session.ring(
                options(device, batches, 2, transfer(EpochBatches.LIMITS), true),
                batches.from(batches.start()))) {
      BatchCheck check = new BatchCheck();
      for (var next = ring.next(); next.isPresent(); next = ring.next()) {
        try (RingBatch<BatchView> batch = next.get()) {
          check.batch(batch);
        }
      }
      System.out.printf("gantry %s\tchecked\t%s on %s%n", label, check.summary(), device);
    }
  }

  static RingOptions options(
      Device device, Batches batches, int slots, TransferOptions transfer, boolean poison) {
    return new RingOptions(
        device, slots, batches.slotBytes(), batches.hostBytes(), transfer, poison);
  }

  static TransferOptions transfer(PlanLimits limits) {
    return TransferOptions.defaults().withLimits(limits);
  }

  /// What the fields of a batch hold.
  static long bytes(BatchView batch) {
    return batch.fields().stream().mapToLong(DatasetBench::bytes).sum();
  }

  /// Normalised fields were bytes.
  private static long bytesRead(BatchView batch) {
    return batch.fields().stream()
        .mapToLong(field ->
            field.dtype() == DType.I64 ? bytes(field) : field.shape().elements().orElseThrow())
        .sum();
  }

  private static long bytes(FieldView field) {
    return field.shape().elements().orElseThrow() * field.dtype().bits() / Byte.SIZE;
  }
}
