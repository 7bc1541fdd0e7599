// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.Location;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.DatasetState;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// TFRecord files of a few records, and a source of batches that reads them as a stream.
@ExtendWith(NoLeaks.class)
abstract class StreamedBatchesFixture {
  static final List<FeatureSpec> ID = List.of(FeatureSpec.int64s("id"));
  static final TfRecordOptions OPTIONS =
      TfRecordOptions.defaults().withChunkBytes(TfRecordOptions.LEAST_CHUNK_BYTES);

  @TempDir Path folder;
  GantrySession session = GantrySession.open();

  @BeforeEach
  void openSession() {
    session = GantrySession.open();
  }

  @AfterEach
  void closeSession() {
    session.close();
  }

  Path write(int file, int records) {
    return Streams.write(session, folder, file, records, Compression.NONE);
  }

  StreamedBatches open(List<Path> files, OrderOptions order, TfRecordOptions options) {
    return StreamedBatches.open(
        session, files.stream().map(Location::of).toList(), ID, order, options);
  }

  static DatasetState firstBatch(StreamedBatches batches) {
    try (BatchPlanSource<BatchView> source = batches.from(batches.start())) {
      return source.next().orElseThrow().label().after();
    }
  }

  /// Writes records that are so long that the stream leaves them in the file for the decoders.
  Path writeLong(int file, int records) {
    return Streams.write(session, folder, file, records, Compression.NONE, 3000);
  }
}
