// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/// A dataset of version 1 that another program wrote from the format's description; it must stay
/// readable.
@ExtendWith(NoLeaks.class)
class GoldenShardsTest {
  static final List<Field> FIELDS =
      List.of(
          new Field("image", DType.U8, TensorShape.of(2, 700)),
          new Field("mask", DType.BOOL, TensorShape.of()),
          new Field("none", DType.F16, TensorShape.of(0, 4)),
          new Field("label", DType.I64, TensorShape.of()),
          new Field("embedding", DType.F32, TensorShape.of(3)));

  static final long BLOCK_BYTES = 8192;

  static Path folder() {
    try {
      return Path.of(GoldenShardsTest.class.getResource("golden").toURI());
    } catch (URISyntaxException e) {
      throw new IllegalStateException(e);
    }
  }

  /// Returns the bytes of a sample's field.
  static byte[] value(int field, int sample) {
    ByteBuffer value =
        ByteBuffer.allocate((int) FIELDS.get(field).sampleBytes()).order(ByteOrder.LITTLE_ENDIAN);
    switch (field) {
      case 0 -> {
        for (int i = 0; i < value.capacity(); i++) {
          value.put((byte) (sample * 37 + i * 11));
        }
      }
      case 1 -> value.put((byte) (sample % 2));
      case 2 -> {}
      case 3 -> value.putLong(-1 - sample * 1_000_000_000_000L);
      default ->
          value.putFloat(sample + 0.5f).putFloat(-sample).putFloat((float) (1.0 / (sample + 1)));
    }
    return value.array();
  }

  @Test
  void isReadAsItWasWritten() throws IOException {
    ShardSet set = ShardSet.open(folder());
    assertThat(set.samples()).isEqualTo(5);
    assertThat(set.blockBytes()).isEqualTo(BLOCK_BYTES);
    assertThat(set.fields()).isEqualTo(FIELDS);
    assertThat(set.metadata())
        .containsExactly(Map.entry("made by", "another hand, after SHARDS.md: é"));
    assertThat(set.shards()).extracting(Shard::samples).containsExactly(3L, 2L);
    try (GantrySession session = GantrySession.open()) {
      set.verify(session);
    }
    int sample = 0;
    for (Shard shard : set.shards()) {
      ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(shard.file()));
      for (int i = 0; i < shard.samples(); i++) {
        for (int field = 0; field < FIELDS.size(); field++) {
          byte[] value = new byte[(int) FIELDS.get(field).sampleBytes()];
          bytes.get((int) shard.offset(field) + i * value.length, value);
          assertThat(value).isEqualTo(value(field, sample));
        }
        sample++;
      }
    }
    assertThat(sample).isEqualTo(5);
  }

  @Test
  void itsChecksumsAreThese() {
    List<Shard> shards = ShardSet.open(folder()).shards();
    assertThat(List.of(shards.get(0).crc32c(0), shards.get(1).crc32c(1)))
        .containsExactly(0x07dcaec1, 0xddeee8e6);
  }
}
