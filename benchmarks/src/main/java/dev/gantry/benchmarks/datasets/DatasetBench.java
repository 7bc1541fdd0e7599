// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.benchmarks.datasets.Samples.Kind;
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.Turns;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.TensorShape;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.PageCache;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/// Measures how fast batches are loaded into a device's memory: `datasets DEVICE
/// rows|random|mapped|streams|first FOLDER BYTES`. `mapped` is the part of `random` in which the
/// GPU fetches the samples itself.
///
/// The bench makes samples of random bytes in `FOLDER` if they are missing. A run counts from the
/// call that opens the dataset to the arrival of the last batch. It reads three epochs through one
/// ring if the page cache is hot, and one epoch otherwise; nothing consumes the batches. Rates
/// count the bytes that are read.
public final class DatasetBench {
  private static final int TURNS = 3;

  /// How many epochs a run in a hot page cache reads.
  static final int EPOCHS = 3;

  private static final Shuffle FILE_ORDER = new Shuffle.None();
  private static final Shuffle SINGLE = new Shuffle.Blocks(1, 1);
  private static final List<Kind> FILES = List.of(Kind.SHARDS, Kind.INDEXED);

  private final GantrySession session;
  private final Device device;
  private final Samples samples;

  private DatasetBench(GantrySession session, Device device, Samples samples) {
    this.session = session;
    this.device = device;
    this.samples = samples;
  }

  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[2]);
    try (GantrySession session = GantrySession.open()) {
      Samples samples = Samples.photos(session, folder, Long.parseLong(arguments[3]));
      DatasetBench bench = new DatasetBench(session, Device.parse(arguments[0]), samples);
      switch (arguments[1]) {
        case "rows" -> bench.rows();
        case "random" -> bench.random(List.of(Transport.STAGED, Transport.MAPPED));
        case "mapped" -> bench.random(List.of(Transport.MAPPED));
        case "first" -> bench.first();
        case "streams" -> bench.streams();
        default -> throw new IllegalArgumentException(arguments[1]);
      }
    }
  }

  private Epochs epochs(int slots, TransferOptions transfer) {
    return new Epochs(session, device, slots, transfer, EPOCHS);
  }

  private Contender contender(Kind kind, Shuffle order, int slots) {
    Epochs epochs = epochs(slots, Epochs.TRANSFER);
    return Contender.of(
        kind.title + ", " + slots + " slots",
        samples.count() * EPOCHS,
        () -> epochs.run(() -> samples.batches(kind, order)));
  }

  private Comparison comparison(String title) throws IOException {
    List<Path> files = samples.files();
    return comparison(title, samples, EPOCHS, () -> files.forEach(PageCache::warm));
  }

  private static Comparison comparison(
      String title, Samples of, int epochs, Turns.Preparation before) {
    return new Comparison(title, of.bytes() * epochs)
        .samples(of.count() * epochs)
        .before(() -> {
          before.run();
          Turns.pause();
        });
  }

  private void check(Kind kind, Shuffle order) throws IOException {
    new Epochs(session, device, 2, Epochs.TRANSFER, 1)
        .check(
            kind.title + ", " + order + " on " + device,
            () -> samples.batches(kind, order),
            samples);
  }

  private void rows() throws Exception {
    Epochs once = new Epochs(session, device, 2, Epochs.TRANSFER, 1);
    try {
      samples.drop();
      Comparison cold = comparison("cold, file order", samples, 1, samples::drop);
      for (Kind kind : Kind.values()) {
        cold.add(
            kind.title, samples.count(), () -> once.run(() -> samples.batches(kind, FILE_ORDER)));
      }
      cold.print(TURNS);
    } catch (IOException | IllegalStateException e) {
      System.out.println("not measured cold: " + e.getMessage());
    }
    Comparison hot = comparison("hot, file order");
    Comparison blocks = comparison("hot, blocks of 32");
    for (Kind kind : FILES) {
      for (int slots = 2; slots <= 4; slots++) {
        hot.add(contender(kind, FILE_ORDER, slots));
      }
      blocks.add(contender(kind, new Shuffle.Blocks(1, 32), 3));
    }
    hot.print(TURNS);
    blocks.print(TURNS);
    for (Kind kind : FILES) {
      for (Shuffle order : List.of(FILE_ORDER, new Shuffle.Blocks(1, 32), SINGLE)) {
        check(kind, order);
      }
    }
    random(List.of(Transport.STAGED, Transport.MAPPED));
    streams();
  }

  /// Measures batches of files without an index, which the CPU reads, checks and decodes.
  private void streams() throws Exception {
    Shuffle buffer = new Shuffle.Samples(1);
    Comparison streams = comparison("hot, streams");
    for (int slots = 2; slots <= 4; slots++) {
      streams.add(contender(Kind.STREAMED, FILE_ORDER, slots));
    }
    streams.print(TURNS);
    comparison("hot, streams, shuffle buffer")
        .add(contender(Kind.STREAMED, buffer, 3))
        .print(TURNS);
    check(Kind.STREAMED, FILE_ORDER);
    check(Kind.STREAMED, buffer);
  }

  /// Measures single samples in random order with each transport; with `mapped` the GPU fetches
  /// them.
  private void random(List<Transport> transports) throws Exception {
    Samples pages =
        new Samples(session, samples.folder(), "pages", TensorShape.of(4096), 500_000, 8192);
    for (Transport transport : transports) {
      Epochs epochs = epochs(3, Epochs.TRANSFER.withTransport(transport));
      Comparison photos = comparison("hot, " + transport + ", single samples");
      for (Kind kind : FILES) {
        photos.add(single(kind.title, epochs, samples, () -> samples.batches(kind, SINGLE)));
        for (DType to : List.of(DType.F32, DType.F16)) {
          photos.add(
              single(
                  kind.title + ", normalised to " + to,
                  epochs,
                  samples,
                  () -> samples.normalized(kind, SINGLE, to)));
        }
      }
      photos.print(TURNS);
      comparison(
              "hot, " + transport + ", single samples of 4 KiB",
              pages,
              EPOCHS,
              () -> pages.files(Kind.SHARDS).forEach(PageCache::warm))
          .add(single("raw shards", epochs, pages, () -> pages.batches(Kind.SHARDS, SINGLE)))
          .print(TURNS);
      new NormalizeBench(session, samples, transport).run(device, TURNS);
    }
  }

  private static Contender single(String name, Epochs epochs, Samples of, Epochs.Opener opener) {
    return Contender.of(name, of.count() * EPOCHS, () -> epochs.run(opener));
  }

  /// Measures the time to the first batch of each of three epochs. Each epoch has a new ring, as
  /// if a program iterated over a dataset three times.
  private void first() throws IOException, InterruptedException {
    samples.files().forEach(PageCache::warm);
    for (Shuffle order : List.of(FILE_ORDER, SINGLE)) {
      for (Kind kind : FILES) {
        for (int i = 0; i < TURNS; i++) {
          session.freeIdle();
          Turns.pause();
          try (Batches batches = samples.batches(kind, order)) {
            for (int epoch = 1; epoch <= EPOCHS; epoch++) {
              first(kind.title + ", " + order + ", epoch " + epoch, batches);
            }
          }
        }
      }
    }
  }

  private void first(String label, Batches batches) {
    long start = System.nanoTime();
    try (PrefetchRing<BatchView> ring =
        session.ring(
            epochs(3, Epochs.TRANSFER).options(batches, false), batches.from(batches.start()))) {
      double opened = millis(start);
      double first = 0;
      for (var next = ring.next(); next.isPresent(); next = ring.next()) {
        try (RingBatch<BatchView> batch = next.get()) {
          first = batch.number() == 0 ? millis(start) : first;
        }
      }
      System.out.printf(
          Locale.ROOT,
          "%s\tfirst batch after %.2f ms, of which %.2f opened the ring; epoch %.1f ms%n",
          label,
          first,
          opened,
          millis(start));
    }
  }

  private static double millis(long start) {
    return (System.nanoTime() - start) / 1e6;
  }
}
