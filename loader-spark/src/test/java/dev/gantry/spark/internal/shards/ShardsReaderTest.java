// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.shards;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.spark.internal.columns.PlannedFile;
import dev.gantry.spark.internal.columns.TensorColumn;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class ShardsReaderTest {
  private static final List<Field> FIELDS = List.of(new Field("id", DType.I64, TensorShape.of()));

  @TempDir Path folder;

  private ShardSet write() {
    try (ShardWriter writer =
        ShardWriter.create(folder.resolve("set"), FIELDS, ShardOptions.defaults())) {
      writer.append(Map.of("id", MemorySegment.ofArray(new long[] {7})));
      return writer.finish();
    }
  }

  @Test
  void closingFreesTheMemoryOfTheRows() {
    Shard shard = write().shards().getFirst();
    ShardsReader reader =
        new ShardsReader(
            new ShardsReader.Part(PlannedFile.of(shard.file()), List.of(shard.offset(0)), 0, 1),
            FIELDS);
    assertThat(reader.next()).isTrue();
    ColumnVector ids = reader.get().column(0);
    assertThat(ids.getLong(0)).isEqualTo(7);
    reader.close();
    assertThatThrownBy(() -> ids.getLong(0)).isInstanceOf(IllegalStateException.class);
    reader.close();
  }

  @Test
  void aReaderWithoutMemoryForItsRowsClosesItsFile() {
    Shard shard = write().shards().getFirst();
    List<Field> huge = List.of(new Field("x", DType.U8, TensorShape.of(1L << 56)));
    ShardsReader.Part part = new ShardsReader.Part(PlannedFile.of(shard.file()), List.of(0L), 0, 1);
    assertThatThrownBy(() -> new ShardsReader(part, huge)).isInstanceOf(OutOfMemoryError.class);
  }

  /// The offsets of its columns may be others by now.
  @Test
  void aShardThatHasChangedSinceItsSetWasOpenedIsNotPlanned() throws IOException {
    Path file = write().shards().getFirst().file();
    Location index = Location.of(folder.resolve("set"));
    ShardsScan scan =
        new ShardsScan(
            ShardSet.open(GantrySession.shared(), index),
            new StructType().add(TensorColumn.toRead(FIELDS.getFirst())),
            1 << 20);
    assertThat(scan.planInputPartitions()).hasSize(1);
    Files.setLastModifiedTime(file, FileTime.fromMillis(0));
    assertThatThrownBy(scan::planInputPartitions)
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("changed-meanwhile");
  }
}
