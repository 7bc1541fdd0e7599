// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.tfrecord.Framed;
import dev.gantry.formats.tfrecord.SkippedFaults;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Files and memory that batches share, and their last holder gives back.
@ExtendWith(NoLeaks.class)
class SharedReaderTest {
  @TempDir Path folder;

  private SharedReader open(AtomicInteger open) throws IOException {
    Path file =
        Files.write(folder.resolve("records"), Framed.of(List.of(new byte[10_000], new byte[1])));
    return SharedReader.open(
        GantrySession.shared(),
        Location.of(file),
        TfRecordOptions.defaults(),
        TfRecordReader.Position.START,
        new SkippedFaults(TfRecordOptions.defaults().corruption()),
        open,
        1);
  }

  @Test
  void aFileCountsAsOpenUntilItsLastHolderReleasesIt() throws IOException {
    AtomicInteger open = new AtomicInteger();
    SharedReader reader = open(open);
    reader.retain();
    reader.release();
    assertThat(open).hasValue(1);
    reader.release();
    assertThat(open).hasValue(0);
  }

  /// A batch may be read while its dataset is closed.
  @Test
  void memoryOfAReadIsFreedWhenTheDatasetWasClosedMeanwhile() throws IOException {
    long before = LiveResources.snapshot().slabs();
    SharedReader reader = open(new AtomicInteger());
    RecordBuffers buffers = new RecordBuffers(1 << 20);
    RecordBuffer buffer = new RecordBuffer(1 << 20);
    try {
      assertThat(reader.next()).isTrue();
      buffer.add(reader.record());
      buffers.read(buffer, 0, 1, (_, _) -> buffers.close());
    } finally {
      buffer.free();
      reader.release();
    }
    assertThat(LiveResources.snapshot().slabs()).isEqualTo(before);
  }
}
