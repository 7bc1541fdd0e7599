// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// A folder for a set of raw shards, and its writer.
@ExtendWith(NoLeaks.class)
abstract class ShardWriterFixture {
  static final int SAMPLES = 20;
  static final List<Field> FIELDS = TestShards.FIELDS;

  @TempDir Path parent;
  final GantrySession session = GantrySession.open();
  final Map<String, byte[]> values = TestShards.values(FIELDS, 1, SAMPLES);

  @AfterEach
  void close() {
    session.close();
  }

  Path folder() {
    return parent.resolve("set");
  }

  ShardWriter writer(GantrySession gantry, int writers) {
    return ShardWriter.create(gantry, folder(), FIELDS, TestShards.options().withWriters(writers));
  }

  void requireWhole(int samples) {
    TestShards.requireWhole(folder(), FIELDS, values, samples, "");
  }
}
