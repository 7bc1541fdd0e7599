// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.formats.internal.json.JsonWriter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/// Writes one file's header: its length, the JSON, and spaces up to the next page, on which the
/// tensors' bytes begin.
final class HeaderWriter {
  private static final int PAGE_BYTES = PlanLimits.BLOCK_BYTES;

  /// The longest JSON that leaves room for the padding.
  private static final long MAX_JSON_BYTES =
      (Long.BYTES + SafetensorsHeader.MAX_HEADER_BYTES) / PAGE_BYTES * PAGE_BYTES - Long.BYTES;

  private HeaderWriter() {}

  /// @param tensors the tensors in the order of their bytes
  /// @param metadata the notes in the order in which they are written
  /// @throws dev.gantry.core.MisuseException if the header gets too long
  static byte[] header(List<NewTensor> tensors, Map<String, String> metadata) {
    byte[] json = json(tensors, metadata);
    int end = Long.BYTES + json.length;
    byte[] header = new byte[(end + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES];
    ByteBuffer.wrap(header)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(header.length - (long) Long.BYTES)
        .put(json);
    Arrays.fill(header, end, header.length, (byte) ' ');
    return header;
  }

  private static byte[] json(List<NewTensor> tensors, Map<String, String> metadata) {
    return new JsonWriter("the header of a file", MAX_JSON_BYTES)
        .compact(json -> {
          json.writeStartObject();
          if (!metadata.isEmpty()) {
            json.writeObjectFieldStart(SafetensorsHeader.METADATA);
            for (Map.Entry<String, String> note : metadata.entrySet()) {
              json.writeStringField(note.getKey(), note.getValue());
            }
            json.writeEndObject();
          }
          long offset = 0;
          for (NewTensor tensor : tensors) {
            long[] shape = tensor.shape().toArray();
            long[] offsets = {offset, offset + tensor.source().length()};
            json.writeObjectFieldStart(tensor.name());
            json.writeStringField("dtype", tensor.dtype().name());
            json.writeFieldName("shape");
            json.writeArray(shape, 0, shape.length);
            json.writeFieldName("data_offsets");
            json.writeArray(offsets, 0, offsets.length);
            json.writeEndObject();
            offset = offsets[1];
          }
          json.writeEndObject();
        });
  }
}
