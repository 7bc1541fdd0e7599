// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.answer;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.json.JsonMembers;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.internal.json.JsonReader.Kind;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.models.HubModel;
import dev.gantry.models.HubModel.Input;
import java.nio.DoubleBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.DoubleStream;
import org.jspecify.annotations.Nullable;

/// A model's inputs, read from a JSON file of the following form. Other members, such as expected
/// answers, are ignored.
///
/// `{"inputs": {NAME: {"shape": […], "dtype": "int64", "values": […]}}}`
public final class Inputs {
  private static final Set<String> WHOLE = Set.of("int64", "int32", "int16", "int8", "uint8");
  private static final Set<String> FLOATS = Set.of("float32", "float64", "float16", "bfloat16");
  private static final int MAX_VALUES = 1 << 28;

  /// One input.
  ///
  /// @param offset the offset in the file at which the input's object begins
  private record Values(long offset, TensorShape shape, String dtype, DoubleBuffer values) {}

  private final FileBytes bytes;
  private final JsonReader json;
  private final HubModel hub;
  private final SequencedMap<String, Values> inputs = new LinkedHashMap<>();

  private Inputs(FileBytes bytes, HubModel hub) {
    this.bytes = bytes;
    this.json = new JsonReader(bytes, 0, bytes.length());
    this.hub = hub;
  }

  /// Reads the inputs, and checks them against the model's.
  ///
  /// @throws MalformedFileException if the file has another structure, or an input does not fit
  ///     the model
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  public static Inputs read(GantrySession session, Path file, HubModel hub) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      Inputs read = new Inputs(bytes, hub);
      read.parse();
      read.check();
      return read;
    }
  }

  /// Makes a new array for each input: of type int64 if the input's dtype is of integers,
  /// otherwise of type float32.
  public Map<String, NDArray> arrays(NDManager manager) {
    Map<String, NDArray> arrays = new LinkedHashMap<>();
    inputs.forEach((name, input) -> arrays.put(name, array(input, manager)));
    return arrays;
  }

  private static NDArray array(Values input, NDManager manager) {
    Shape shape = new Shape(input.shape.toArray());
    double[] values = input.values.array();
    if (WHOLE.contains(input.dtype)) {
      return manager.create(
          Arrays.stream(values).mapToLong(value -> (long) value).toArray(), shape);
    }
    float[] floats = new float[values.length];
    for (int i = 0; i < floats.length; i++) {
      floats[i] = (float) values[i];
    }
    return manager.create(floats, shape);
  }

  private void parse() {
    List<String> read = new ArrayList<>();
    members(
        "not-an-object",
        "the file of inputs must be a JSON object",
        member -> {
          if (!member.equals("inputs")) {
            json.skip();
            return;
          }
          if (!read.isEmpty()) {
            throw json.malformed("duplicate-field", "'inputs' is given twice");
          }
          read.add(member);
          members("invalid-inputs", "'inputs' must be an object", this::parse);
        });
    json.end();
    if (read.isEmpty()) {
      throw malformed(0, "missing-inputs", "the file has no 'inputs'");
    }
  }

  /// Reads an object's members.
  ///
  /// @param kind the kind of the error if the value is not an object
  /// @param detail the detail of that error
  /// @param member receives each member's name, and reads its value
  private void members(String kind, String detail, Consumer<String> member) {
    if (json.peek() != Kind.OBJECT) {
      throw json.unwanted(kind, detail);
    }
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      member.accept(json.memberName());
    }
  }

  private void parse(String name) {
    long offset = json.valueOffset();
    Map<String, Object> read = new HashMap<>();
    members(
        "invalid-input",
        "input '" + name + "' must be an object",
        member -> {
          switch (member) {
            case "shape" -> read.put(member, JsonMembers.shape(json, "input", name));
            case "dtype" -> read.put(member, dtype(name));
            case "values" -> read.put(member, values(name));
            default -> json.skip();
          }
        });
    if (!(read.get("shape") instanceof TensorShape shape)
        || !(read.get("dtype") instanceof String dtype)
        || !(read.get("values") instanceof DoubleBuffer values)) {
      throw malformed(
          offset, "missing-field", "input '" + name + "' must have shape, dtype and values");
    }
    if (shape.elements().orElse(-1) != values.capacity()) {
      throw malformed(
          offset,
          "wrong-count",
          "input '" + name + "' of shape " + shape + " has " + values.capacity() + " values");
    }
    if (inputs.put(name, new Values(offset, shape, dtype, values)) != null) {
      throw json.malformedAt(offset, "duplicate-field", "input '" + name + "' is given twice");
    }
  }

  private String dtype(String name) {
    if (json.peek() == Kind.STRING) {
      String dtype = json.string();
      if (WHOLE.contains(dtype) || FLOATS.contains(dtype)) {
        return dtype;
      }
      throw json.malformed(
          "unknown-dtype", "input '" + name + "' has the unknown dtype '" + dtype + "'");
    }
    throw json.unwanted("invalid-dtype", "the dtype of input '" + name + "' must be a string");
  }

  private DoubleBuffer values(String name) {
    if (json.peek() != Kind.ARRAY) {
      throw json.unwanted("invalid-values", "the values of input '" + name + "' must be an array");
    }
    DoubleStream.Builder values = DoubleStream.builder();
    int count = 0;
    for (boolean more = json.beginArray(); more; more = json.nextElement()) {
      if (json.peek() != Kind.NUMBER) {
        throw json.unwanted("invalid-value", "the values of input '" + name + "' must be numbers");
      }
      if (count++ == MAX_VALUES) {
        throw json.malformed(
            "too-many-values", "input '" + name + "' has more than " + MAX_VALUES + " values");
      }
      values.add(Double.parseDouble(json.number()));
    }
    return DoubleBuffer.wrap(values.build().toArray());
  }

  /// Checks the dtype, shape and values of each input that the model names.
  private void check() {
    @Nullable TensorShape text = null;
    for (Input known : hub.inputs()) {
      Values given = inputs.get(known.name());
      if (given == null) {
        continue;
      }
      boolean whole = !known.type().isFloating();
      int rank = whole ? 2 : 4;
      if (WHOLE.contains(given.dtype) != whole) {
        throw refused(known, given, "must be " + (whole ? "int64" : "float32"));
      }
      if (given.shape.rank() != rank || given.values.capacity() == 0) {
        throw refused(known, given, "must have " + rank + " axes and at least one value");
      }
      if (whole) {
        checkWhole(known, given);
        if (text != null && !text.equals(given.shape)) {
          throw refused(known, given, "must have the shape of the other inputs, " + text);
        }
        text = given.shape;
      }
    }
  }

  private void checkWhole(Input known, Values given) {
    for (double value : given.values.array()) {
      if (value != Math.rint(value) || value < 0 || value >= known.bound()) {
        throw refused(
            known,
            given,
            "has the value %s; it must be a whole number from 0 to %s"
                .formatted(value, known.bound() - 1));
      }
    }
  }

  private MalformedFileException refused(Input known, Values given, String reason) {
    return malformed(
        given.offset,
        "wrong-input",
        "input '" + known.name() + "' (" + given.dtype + " " + given.shape + ") " + reason);
  }

  private MalformedFileException malformed(long offset, String kind, String detail) {
    return new MalformedFileException(bytes.file(), offset, kind, detail);
  }
}
