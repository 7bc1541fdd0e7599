// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.json.JsonWriter;
import java.io.IOException;
import java.util.HexFormat;
import java.util.Map;

/// Writes `shards.json`, indented for people to read; [ShardIndexParser] reads it.
final class ShardIndexWriter {
  private ShardIndexWriter() {}

  /// Returns the index's text in UTF-8.
  ///
  /// @throws dev.gantry.core.MisuseException if the text gets too long
  static byte[] bytes(ShardSet set) {
    return new JsonWriter(ShardSet.FILE_NAME, ShardSet.MAX_INDEX_BYTES)
        .indented(json -> {
          json.writeStartObject();
          json.writeStringField("format", ShardSet.FORMAT);
          json.writeNumberField("version", ShardSet.VERSION);
          json.writeNumberField("samples", set.samples());
          json.writeNumberField("block_bytes", set.blockBytes());
          json.writeArrayFieldStart("fields");
          for (Field field : set.fields()) {
            field(json, field);
          }
          json.writeEndArray();
          json.writeObjectFieldStart("metadata");
          for (Map.Entry<String, String> note : set.metadata().entrySet()) {
            json.writeStringField(note.getKey(), note.getValue());
          }
          json.writeEndObject();
          json.writeArrayFieldStart("shards");
          for (Shard shard : set.shards()) {
            shard(json, shard, set.fields().size());
          }
          json.writeEndArray();
          json.writeEndObject();
        });
  }

  private static void field(JsonGenerator json, Field field) throws IOException {
    json.writeStartObject();
    json.writeStringField("name", field.name());
    json.writeStringField("dtype", field.dtype().name());
    json.writeFieldName("shape");
    long[] dimensions = field.shape().toArray();
    json.writeArray(dimensions, 0, dimensions.length);
    json.writeEndObject();
  }

  private static void shard(JsonGenerator json, Shard shard, int fields) throws IOException {
    json.writeStartObject();
    json.writeStringField("file", shard.name());
    json.writeNumberField("samples", shard.samples());
    json.writeNumberField("bytes", shard.bytes());
    json.writeArrayFieldStart("offsets");
    for (int field = 0; field < fields; field++) {
      json.writeNumber(shard.offset(field));
    }
    json.writeEndArray();
    StringBuilder sums = new StringBuilder();
    for (int block = 0; block < shard.blocks(); block++) {
      sums.append(HexFormat.of().toHexDigits(shard.crc32c(block)));
    }
    json.writeStringField("crc32c", sums.toString());
    json.writeEndObject();
  }
}
