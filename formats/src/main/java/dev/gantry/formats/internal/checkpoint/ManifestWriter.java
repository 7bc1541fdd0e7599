// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.formats.internal.json.JsonWriter;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;

/// Writes a manifest as indented JSON, which people can read, too; [ManifestParser] reads it.
final class ManifestWriter {
  private ManifestWriter() {}

  /// Returns the manifest's text in UTF-8.
  ///
  /// @throws dev.gantry.core.MisuseException if the text is longer than [Manifest#MAX_BYTES]
  static byte[] bytes(Manifest manifest) {
    return sealed(withoutChecksum(manifest));
  }

  /// Writes the checksum over its placeholder. The placeholder is the first match in the
  /// manifest, since it comes before any text of the user's.
  static byte[] sealed(byte[] bytes) {
    String sum = HexFormat.of().toHexDigits(Crc32c.of(MemorySegment.ofArray(bytes)));
    int at = new String(bytes, StandardCharsets.ISO_8859_1).indexOf(Manifest.NO_CHECKSUM);
    System.arraycopy(sum.getBytes(StandardCharsets.US_ASCII), 0, bytes, at, sum.length());
    return bytes;
  }

  private static byte[] withoutChecksum(Manifest manifest) {
    return new JsonWriter("the manifest", Manifest.MAX_BYTES)
        .indented(json -> {
          json.writeStartObject();
          json.writeStringField("format", Manifest.FORMAT);
          json.writeNumberField("version", Manifest.VERSION);
          json.writeStringField("crc32c", Manifest.NO_CHECKSUM);
          json.writeNumberField("step", manifest.step());
          json.writeNumberField("sequence", manifest.sequence());
          json.writeObjectFieldStart("history");
          for (Map.Entry<String, Long> save : manifest.history().saves().entrySet()) {
            json.writeNumberField(save.getKey(), save.getValue());
          }
          json.writeEndObject();
          json.writeBooleanField("finite", manifest.finite());
          strings(json, "state", manifest.state());
          json.writeObjectFieldStart("metrics");
          for (Map.Entry<String, Double> metric : manifest.metrics().entrySet()) {
            double value = metric.getValue();
            // NaN and the infinities become strings.
            json.writeNumberField(metric.getKey(), value);
          }
          json.writeEndObject();
          strings(json, "metadata", manifest.metadata());
          json.writeArrayFieldStart("files");
          for (Manifest.FileEntry file : manifest.files()) {
            file(json, file);
          }
          json.writeEndArray();
          json.writeEndObject();
        });
  }

  private static void strings(JsonGenerator json, String name, Map<String, String> strings)
      throws IOException {
    json.writeObjectFieldStart(name);
    for (Map.Entry<String, String> entry : strings.entrySet()) {
      json.writeStringField(entry.getKey(), entry.getValue());
    }
    json.writeEndObject();
  }

  private static void file(JsonGenerator json, Manifest.FileEntry file) throws IOException {
    json.writeStartObject();
    json.writeStringField("name", file.name());
    json.writeNumberField("size", file.size());
    json.writeStringField("crc32c", HexFormat.of().toHexDigits(file.crc32c()));
    if (!file.tensors().isEmpty()) {
      json.writeObjectFieldStart("tensors");
      for (Map.Entry<String, Integer> tensor : file.tensors().entrySet()) {
        json.writeStringField(tensor.getKey(), HexFormat.of().toHexDigits(tensor.getValue()));
      }
      json.writeEndObject();
    }
    json.writeEndObject();
  }
}
