// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.json.JsonMembers;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.internal.json.JsonReader.Kind;
import dev.gantry.formats.spi.FileBytes;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// Parses an index, `{"metadata": {"total_size": n, …}, "weight_map": {tensor: file, …}}`.
final class IndexParser {
  private final FileBytes bytes;
  private final JsonReader json;

  /// One copy of each data file's name, which many tensors share.
  private final Map<String, String> dataFiles = new HashMap<>();

  /// @throws MalformedFileException of kind `index-too-large`
  IndexParser(FileBytes bytes) {
    this.bytes = bytes;
    if (bytes.length() > SafetensorsIndex.MAX_INDEX_BYTES) {
      throw new MalformedFileException(
          bytes.file(),
          0,
          "index-too-large",
          bytes.length() + " bytes, more than " + SafetensorsIndex.MAX_INDEX_BYTES);
    }
    this.json = new JsonReader(bytes, 0, bytes.length());
  }

  SafetensorsIndex parse() {
    json.require(Kind.OBJECT, "not-an-object", "the index");
    @Nullable SequencedMap<String, SafetensorsIndex.Entry> weightMap = null;
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      switch (json.memberName()) {
        case "weight_map" -> {
          if (weightMap != null) {
            throw json.malformed("duplicate-field", "weight_map occurs twice");
          }
          weightMap = weightMap();
        }
        default -> json.skip();
      }
    }
    json.end();
    if (weightMap == null) {
      throw new MalformedFileException(
          bytes.file(),
          0,
          "missing-weight-map",
          "this JSON has no weight_map, which an index of weights must have (its folder may hold"
              + " weights)");
    }
    return new SafetensorsIndex(bytes.file(), weightMap);
  }

  private SequencedMap<String, SafetensorsIndex.Entry> weightMap() {
    json.require(Kind.OBJECT, "invalid-weight-map", "weight_map");
    SequencedMap<String, SafetensorsIndex.Entry> weightMap = new LinkedHashMap<>();
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      String tensor = json.memberName();
      long offset = json.valueOffset();
      if (json.peek() != Kind.STRING) {
        throw json.unwanted(
            Kind.STRING, "shard-name-not-a-string", "the file name of tensor '" + tensor + "'");
      }
      String dataFile = dataFile(json.string(), tensor);
      if (weightMap.size() == SafetensorsHeader.MAX_TENSORS) {
        throw json.malformed(
            "too-many-tensors", "more than " + SafetensorsHeader.MAX_TENSORS + " tensors");
      }
      json.countEntry();
      SafetensorsIndex.Entry earlier =
          weightMap.putIfAbsent(tensor, new SafetensorsIndex.Entry(dataFile, offset));
      if (earlier != null) {
        throw duplicate(tensor, earlier.dataFile(), dataFile, offset);
      }
    }
    return weightMap;
  }

  private MalformedFileException duplicate(
      String tensor, String first, String second, long offset) {
    if (first.equals(second)) {
      return json.malformedAt(offset, "duplicate-tensor", "tensor '" + tensor + "' occurs twice");
    }
    return json.malformedAt(
        offset,
        "tensor-in-two-shards",
        "tensor '" + tensor + "' is in '" + first + "' and in '" + second + "'");
  }

  /// Reads a data file's name, and refuses a name that could mean a file outside the index's
  /// folder.
  private String dataFile(String name, String tensor) {
    String known = dataFiles.get(name);
    if (known != null) {
      return known;
    }
    JsonMembers.checkFileName(json, name, "tensor '" + tensor + "' is in '" + name + "'");
    dataFiles.put(name, name);
    return name;
  }
}
