// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.internal.json.JsonMembers;
import dev.gantry.formats.internal.json.JsonReader;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/// Reads `{"dtype": …, "shape": […], "data_offsets": [begin, end]}` and checks that the three fit. It skips
/// other members, as the reference implementation does.
final class TensorEntryParser {
  private final String name;
  private final JsonReader json;
  private @Nullable DType dtype;
  private @Nullable TensorShape shape;
  private @Nullable Offsets offsets;

  private record Offsets(long begin, long end) {}

  /// A tensor's entry, consistent in itself: `end - begin` is what dtype and shape need.
  ///
  /// @param begin the offset from the start of the data section, not yet checked against the file
  record Entry(String name, DType dtype, TensorShape shape, long begin, long end) {
    /// Orders entries by their bytes; tensors without bytes are ordered by name.
    static int compareInFile(Entry a, Entry b) {
      int byBegin = Long.compare(a.begin, b.begin);
      int byPlace = byBegin == 0 ? Long.compare(a.end, b.end) : byBegin;
      return byPlace == 0 ? a.name.compareTo(b.name) : byPlace;
    }
  }

  TensorEntryParser(String name, JsonReader json) {
    this.name = name;
    this.json = json;
  }

  Entry parse() {
    if (json.peek() != JsonReader.Kind.OBJECT) {
      throw json.unwanted(JsonReader.Kind.OBJECT, "tensor-not-an-object", subject());
    }
    long start = json.valueOffset();
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      switch (json.memberName()) {
        case "dtype" -> {
          once(dtype, "dtype");
          dtype = JsonMembers.dtype(json, "tensor", name);
        }
        case "shape" -> {
          once(shape, "shape");
          shape = JsonMembers.shape(json, "tensor", name);
        }
        case "data_offsets" -> {
          once(offsets, "data_offsets");
          offsets = offsets();
        }
        default -> json.skip();
      }
    }
    return fitting(
        required(dtype, "dtype", start),
        required(shape, "shape", start),
        required(offsets, "data_offsets", start),
        start);
  }

  private void once(@Nullable Object seen, String field) {
    if (seen != null) {
      throw malformed("duplicate-field", "has a second " + field);
    }
  }

  private <T> T required(@Nullable T seen, String field, long start) {
    if (seen == null) {
      throw json.malformedAt(
          start, "missing-" + field.replace('_', '-'), subject() + " has no " + field);
    }
    return seen;
  }

  private Offsets offsets() {
    if (json.peek() != JsonReader.Kind.ARRAY) {
      throw json.unwanted(
          JsonReader.Kind.ARRAY, "invalid-data-offsets", "data_offsets of " + subject());
    }
    long start = json.valueOffset();
    long[] pair = new long[2];
    int count = 0;
    for (boolean more = json.beginArray(); more; more = json.nextElement()) {
      if (count == pair.length) {
        throw notAPair(start, "more");
      }
      pair[count++] = json.count("offset");
    }
    if (count < pair.length) {
      throw notAPair(start, "fewer");
    }
    if (pair[1] < pair[0]) {
      throw json.malformedAt(
          start, "end-before-start", subject() + " goes from " + pair[0] + " back to " + pair[1]);
    }
    return new Offsets(pair[0], pair[1]);
  }

  private MalformedFileException notAPair(long start, String how) {
    return json.malformedAt(
        start, "offsets-not-a-pair", subject() + " has " + how + " than two data_offsets");
  }

  private Entry fitting(DType dtype, TensorShape shape, Offsets offsets, long start) {
    OptionalLong elements = shape.elements();
    if (elements.isEmpty() || elements.getAsLong() > Long.MAX_VALUE / dtype.bits()) {
      throw json.malformedAt(
          start, "shape-overflow", claim(dtype, shape) + " has too many elements to count");
    }
    long bits = elements.getAsLong() * dtype.bits();
    if (bits % Byte.SIZE != 0) {
      throw json.malformedAt(
          start, "not-whole-bytes", claim(dtype, shape) + " does not end with a whole byte");
    }
    if (offsets.end() - offsets.begin() != bits / Byte.SIZE) {
      throw json.malformedAt(
          start,
          "size-mismatch",
          "%s takes %s bytes, but is given %s"
              .formatted(claim(dtype, shape), bits / Byte.SIZE, offsets.end() - offsets.begin()));
    }
    return new Entry(name, dtype, shape, offsets.begin(), offsets.end());
  }

  private String claim(DType dtype, TensorShape shape) {
    return "tensor '" + name + "', " + dtype + " " + shape + ",";
  }

  private String subject() {
    return "tensor '" + name + "'";
  }

  private MalformedFileException malformed(String kind, String detail) {
    return json.malformed(kind, subject() + " " + detail);
  }
}
