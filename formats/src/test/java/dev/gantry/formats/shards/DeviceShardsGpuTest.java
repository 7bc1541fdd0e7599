// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Source;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.Field;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Shards of samples from the memory of a device.
@Tag("gpu")
@ExtendWith(NoLeaks.class)
class DeviceShardsGpuTest {
  private static final int SAMPLES = 1000;
  private static final List<Field> FIELDS = TestShards.FIELDS;

  @TempDir Path folder;
  private final GantrySession session = GantrySession.open();
  private final Map<String, byte[]> values = TestShards.values(FIELDS, 3, SAMPLES);
  private final ShardOptions options =
      TestShards.options().withWriters(2).withSamplesPerShard(300).withBlockBytes(1 << 16);
  private Loaded loaded;

  @BeforeEach
  void load() throws IOException {
    List<ExtentRequest> wanted = new ArrayList<>();
    for (Field field : FIELDS) {
      byte[] bytes = values.get(field.name());
      Path file = Files.write(folder.resolve(field.name()), bytes);
      wanted.add(new ExtentRequest(new Extent(file, 0, bytes.length), 8));
    }
    loaded = session.load(wanted, new Device.Cuda(0), TransferOptions.defaults());
  }

  @AfterEach
  void close() {
    loaded.close();
    session.close();
  }

  private Map<String, Source> sources(long first, long count) {
    Map<String, Source> sources = new LinkedHashMap<>();
    for (int i = 0; i < FIELDS.size(); i++) {
      long bytes = FIELDS.get(i).sampleBytes();
      sources.put(
          FIELDS.get(i).name(),
          loaded.regions().get(i).source().slice(first * bytes, count * bytes));
    }
    return sources;
  }

  @Test
  void appended() {
    Path set = folder.resolve("set");
    try (ShardWriter writer = ShardWriter.create(session, set, FIELDS, options)) {
      writer.append(1, sources(0, 1));
      writer.append(SAMPLES - 1, sources(1, SAMPLES - 1));
      writer.finish();
    }
    TestShards.requireWhole(set, FIELDS, values, SAMPLES, "");
  }

  @Test
  void asWholeArrays() {
    Path set = folder.resolve("set");
    ShardWriter.write(session, set, FIELDS, SAMPLES, sources(0, SAMPLES), options);
    TestShards.requireWhole(set, FIELDS, values, SAMPLES, "");
  }
}
