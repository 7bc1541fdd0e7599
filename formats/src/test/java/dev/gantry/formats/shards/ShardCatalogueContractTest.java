// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleCatalogueContract;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

class ShardCatalogueContractTest extends SampleCatalogueContract {
  private static final int SAMPLES = 8;
  private static final int SAMPLES_PER_SHARD = 3;

  @TempDir Path folder;
  private final GantrySession session = GantrySession.open();
  private final Map<String, byte[]> values = TestShards.values(TestShards.FIELDS, 7, SAMPLES);

  @AfterEach
  void close() {
    session.close();
  }

  @Override
  protected SampleCatalogue open() {
    Path set = folder.resolve("set");
    if (!Files.exists(set)) {
      ShardWriter.write(
          session,
          set,
          TestShards.FIELDS,
          SAMPLES,
          TestShards.sources(TestShards.FIELDS, values, 0, SAMPLES),
          TestShards.options().withSamplesPerShard(SAMPLES_PER_SHARD));
    }
    return ShardSet.open(set).catalogue();
  }

  @Override
  protected byte[] value(String field, int dataFile, long sample) {
    int at = Math.toIntExact(dataFile * SAMPLES_PER_SHARD + sample);
    return Objects.requireNonNull(TestShards.segments(TestShards.FIELDS, values, at, 1).get(field))
        .toArray(ValueLayout.JAVA_BYTE);
  }
}
