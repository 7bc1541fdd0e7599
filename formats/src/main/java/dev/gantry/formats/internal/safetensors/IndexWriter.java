// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.formats.internal.json.JsonWriter;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/// Writes `{"metadata": {"total_size": n}, "weight_map": {tensor: shard, …}}`, tensors by name.
final class IndexWriter {
  private IndexWriter() {}

  /// @throws dev.gantry.core.MisuseException if the index gets too long
  static byte[] index(List<NewDataFile> shards) {
    SortedMap<String, String> weightMap = new TreeMap<>();
    long totalSize = 0;
    for (NewDataFile shard : shards) {
      for (NewTensor tensor : shard.tensors()) {
        weightMap.put(tensor.name(), shard.name());
        totalSize += tensor.source().length();
      }
    }
    return index(weightMap, totalSize);
  }

  private static byte[] index(SortedMap<String, String> weightMap, long totalSize) {
    return new JsonWriter("the index", SafetensorsIndex.MAX_INDEX_BYTES)
        .indented(json -> {
          json.writeStartObject();
          json.writeObjectFieldStart("metadata");
          json.writeNumberField("total_size", totalSize);
          json.writeEndObject();
          json.writeObjectFieldStart("weight_map");
          for (Map.Entry<String, String> entry : weightMap.entrySet()) {
            json.writeStringField(entry.getKey(), entry.getValue());
          }
          json.writeEndObject();
          json.writeEndObject();
          json.writeRaw('\n');
        });
  }
}
