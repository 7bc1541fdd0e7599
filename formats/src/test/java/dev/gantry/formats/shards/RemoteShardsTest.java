// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// A set of shards in another store than the local one.
@ExtendWith(NoLeaks.class)
class RemoteShardsTest {
  @TempDir Path folder;

  @Test
  void damageNamesTheShardInItsStore() throws IOException {
    ShardSet local;
    List<Field> fields = List.of(new Field("x", DType.U8, TensorShape.of(5)));
    try (ShardWriter writer =
        ShardWriter.create(folder.resolve("set"), fields, ShardOptions.defaults())) {
      writer.append(Map.of("x", MemorySegment.ofArray(new byte[5])));
      local = writer.finish();
    }
    String name = "remote-shards/" + local.shards().getFirst().name();
    Location shard = MemoryStore.put(name, new byte[5]);
    Location index = MemoryStore.put("remote-shards/shards.json", Files.readAllBytes(local.file()));
    ShardSet set = ShardSet.open(GantrySession.shared(), index);
    assertThatCode(set::verify).doesNotThrowAnyException();
    Location _ = MemoryStore.put(name, new byte[] {0, 0, 0, 1, 0});
    ShardSet damaged = ShardSet.open(GantrySession.shared(), index);
    assertThat(catchThrowableOfType(MalformedFileException.class, damaged::verify))
        .returns("checksum-mismatch", MalformedFileException::kind)
        .returns(shard, MalformedFileException::file);
  }
}
