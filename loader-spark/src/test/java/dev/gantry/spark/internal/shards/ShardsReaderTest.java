// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.spark.internal.columns.PlannedFile;
import dev.gantry.testing.NoLeaks;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class ShardsReaderTest {
  @TempDir Path folder;

  @Test
  void closingFreesTheMemoryOfTheRows() {
    List<Field> fields = List.of(new Field("id", DType.I64, TensorShape.of()));
    ShardSet set;
    try (ShardWriter writer =
        ShardWriter.create(folder.resolve("set"), fields, ShardOptions.defaults())) {
      writer.append(Map.of("id", MemorySegment.ofArray(new long[] {7})));
      set = writer.finish();
    }
    Shard shard = set.shards().getFirst();
    ShardsReader reader =
        new ShardsReader(
            new ShardsReader.Part(PlannedFile.of(shard.file()), List.of(shard.offset(0)), 0, 1),
            fields);
    assertThat(reader.next()).isTrue();
    ColumnVector ids = reader.get().column(0);
    assertThat(ids.getLong(0)).isEqualTo(7);
    reader.close();
    assertThatThrownBy(() -> ids.getLong(0)).isInstanceOf(IllegalStateException.class);
    reader.close();
  }
}
