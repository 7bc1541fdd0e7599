// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;

/// Files of examples that a seed determines.
final class TestExamples {
  static final int IMAGE_BYTES = 50;
  static final int FLOATS = 7;

  private TestExamples() {}

  static byte[] image(long seed, long record) {
    return TestFiles.bytes(seed * 1000 + record, IMAGE_BYTES);
  }

  static float[] floats(long seed, long record) {
    Random random = new Random(seed * 1000 + record);
    float[] floats = new float[FLOATS];
    for (int i = 0; i < floats.length; i++) {
      floats[i] = (float) random.nextGaussian();
    }
    return floats;
  }

  /// The labels have many widths as varints, so that no value lies at the same offset in all
  /// records.
  static long[] label(long seed, long record) {
    return new long[] {new Random(seed + record).nextInt(20_000), record};
  }

  /// Returns a record like any writer's.
  static byte[] record(long seed, long record) {
    return new ExampleBuilder()
        .bytes("image", image(seed, record))
        .floats("floats", floats(seed, record))
        .int64s("label", label(seed, record))
        .toBytes();
  }

  static Path write(GantrySession session, Path file, List<byte[]> records) {
    try (TfRecordWriter writer = TfRecordWriter.create(session, file, Compression.NONE)) {
      records.forEach(writer::write);
      writer.commit();
    }
    return file;
  }

  static Path write(GantrySession session, Path file, long seed, int records) {
    try (TfRecordWriter writer = TfRecordWriter.create(session, file, Compression.NONE)) {
      for (int record = 0; record < records; record++) {
        writer.write(record(seed, record));
      }
      writer.commit();
    }
    return file;
  }
}
