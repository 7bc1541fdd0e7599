// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.Device;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.benchmarks.datasets.Samples;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.GantryDataset;
import dev.gantry.djl.IndexUse;
import dev.gantry.djl.ShardDataset;
import dev.gantry.djl.TfRecordDataset;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.UnaryOperator;

/// Samples in raw shards and in TFRecord files, whose bytes are also in memory, and the order in
/// which an uninterrupted epoch has them.
final class KnownSamples {
  /// Says which files an epoch reads, and in which order.
  enum Kind {
    SHARDS("epoch of raw shards"),
    INDEXED("epoch of TFRecord by index"),
    STREAMED("epoch of a TFRecord stream");

    final String title;

    Kind(String title) {
      this.title = title;
    }
  }

  private static final int COUNT = 3000;
  private static final int BATCH = 48;
  private static final TensorShape SHAPE = TensorShape.of(3, 32, 32);

  private final Path shards;
  private final List<Path> records;
  private final Samples samples;
  private final byte[][] images = new byte[COUNT][];
  private final Map<Kind, List<Long>> orders = new EnumMap<>(Kind.class);

  private KnownSamples(Samples samples) throws IOException {
    this.samples = samples;
    this.shards = samples.shards();
    this.records = samples.records();
    TfRecordDataset.buildIndexes(records);
    var made = samples.images();
    for (int i = 0; i < COUNT; i++) {
      images[i] = made.apply(i).clone();
    }
  }

  static KnownSamples make(Path folder) throws IOException {
    try (GantrySession session = GantrySession.open()) {
      KnownSamples known =
          new KnownSamples(new Samples(session, folder, "samples", SHAPE, COUNT, 1));
      for (Kind kind : Kind.values()) {
        known.orders.put(kind, known.undisturbed(session, kind));
      }
      return known;
    }
  }

  private List<Long> undisturbed(GantrySession session, Kind kind) {
    List<Long> order = new ArrayList<>();
    try (GantryDataset dataset = open(kind, session, 1, UnaryOperator.identity());
        NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch")) {
      for (Batch batch : dataset.getData(manager)) {
        try (batch) {
          for (long label : batch.getLabels().singletonOrThrow().toLongArray()) {
            order.add(label);
          }
        }
      }
    }
    if (order.stream().distinct().count() != COUNT || order.size() != COUNT) {
      throw new WrongBytesException(kind + " has " + order.size() + " samples");
    }
    return order;
  }

  /// Opens the samples in an order that does not depend on the number of readers.
  ///
  /// @param transform the transform of the images
  GantryDataset open(
      Kind kind, GantrySession session, int threads, UnaryOperator<NDList> transform) {
    return switch (kind) {
      case SHARDS ->
          ShardDataset.builder()
              .setPath(shards)
              .setSampling(BATCH)
              .optShuffle(7)
              .optData("image")
              .optTransform(transform)
              .optThreads(threads)
              .optSession(session)
              .build();
      case INDEXED, STREAMED ->
          TfRecordDataset.builder()
              .setPath(records)
              .addFeature(samples.features().getFirst())
              .addFeature(samples.features().getLast())
              .optIndex(kind == Kind.INDEXED ? IndexUse.REQUIRE : IndexUse.NONE)
              .optRecords(TfRecordOptions.defaults().withShuffleBuffer(200, 4 << 20))
              .setSampling(BATCH)
              .optShuffle(7)
              .optInterleave(2, 5)
              .optData("image")
              .optTransform(transform)
              .optThreads(threads)
              .optSession(session)
              .build();
    };
  }

  int count() {
    return COUNT;
  }

  /// Compares a batch with the samples that the order has at this position.
  ///
  /// @return how many samples it has
  int verify(Kind kind, int from, Batch batch) {
    List<Long> order = Objects.requireNonNull(orders.get(kind));
    long[] labels = batch.getLabels().singletonOrThrow().toLongArray();
    ByteBuffer found = batch.getData().singletonOrThrow().toByteBuffer();
    int size = samples.imageBytes();
    for (int i = 0; i < labels.length; i++) {
      long expected = order.get(from + i);
      if (labels[i] != expected) {
        throw new WrongBytesException(
            "sample %d of %s is number %d instead of %d"
                .formatted(from + i, kind.title, labels[i], expected));
      }
      long _ =
          KnownWeights.verify(
              kind.title,
              found.slice(found.position() + i * size, size),
              ByteBuffer.wrap(images[(int) expected]));
    }
    return labels.length;
  }

  long bytes(int samplesOf) {
    return (long) samplesOf * (samples.imageBytes() + Long.BYTES);
  }
}
