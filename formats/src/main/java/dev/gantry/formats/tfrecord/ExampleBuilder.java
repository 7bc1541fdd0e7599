// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import com.google.protobuf.CodedOutputStream;
import dev.gantry.core.MisuseException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// Makes a `tf.train.Example`, or a `SequenceExample`, feature by feature. If a feature is put
/// twice, its last value counts. The same features give the same bytes. Not thread-safe.
public final class ExampleBuilder {
  private static final int BYTES = 1;
  private static final int FLOATS = 2;
  private static final int INT64S = 3;
  private final Map<String, WireMessage> features;
  private final Map<String, WireMessage> lists;

  private ExampleBuilder(boolean sorted) {
    features = sorted ? new TreeMap<>() : new LinkedHashMap<>();
    lists = sorted ? new TreeMap<>() : new LinkedHashMap<>();
  }

  /// Makes a builder that writes features in the order of their names, as TensorFlow's
  /// deterministic serialization does.
  public ExampleBuilder() {
    this(true);
  }

  /// Makes a builder that writes features in the order in which their names are first put.
  public static ExampleBuilder inOrderOfInsertion() {
    return new ExampleBuilder(false);
  }

  /// Puts a feature of kind BYTES, with one string of bytes for each value. It replaces an
  /// earlier feature of the same name.
  public ExampleBuilder bytes(String name, byte[]... values) {
    return put(name, feature(values));
  }

  /// Puts a feature of kind FLOAT. It replaces an earlier feature of the same name.
  public ExampleBuilder floats(String name, float... values) {
    return put(name, feature(values));
  }

  /// Puts a feature of kind INT64. It replaces an earlier feature of the same name.
  public ExampleBuilder int64s(String name, long... values) {
    return put(name, feature(values));
  }

  /// Puts a feature list of kind BYTES with one step for each of `steps`; each step has one
  /// value.
  public ExampleBuilder bytesSteps(String name, List<byte[]> steps) {
    return steps(
        name,
        MisuseException.requireGiven("steps", steps).stream()
            .map(step -> feature(new byte[][] {step}))
            .toList());
  }

  /// One step for each of `steps`.
  public ExampleBuilder floatSteps(String name, List<float[]> steps) {
    return steps(
        name,
        MisuseException.requireGiven("steps", steps).stream()
            .map(ExampleBuilder::feature)
            .toList());
  }

  /// One step for each of `steps`.
  public ExampleBuilder int64Steps(String name, List<long[]> steps) {
    return steps(
        name,
        MisuseException.requireGiven("steps", steps).stream()
            .map(ExampleBuilder::feature)
            .toList());
  }

  private ExampleBuilder put(String name, WireMessage feature) {
    features.put(MisuseException.requireGiven("name", name), feature);
    return this;
  }

  private ExampleBuilder steps(String name, List<WireMessage> steps) {
    MisuseException.requireGiven("name", name);
    WireMessage list = new WireMessage();
    steps.forEach(step -> list.add(1, step));
    lists.put(name, list);
    return this;
  }

  private static WireMessage feature(byte[][] values) {
    WireMessage list = new WireMessage();
    for (byte[] value : MisuseException.requireGiven("values", values)) {
      list.add(1, MisuseException.requireGiven("a value", value).clone());
    }
    return new WireMessage().add(BYTES, list);
  }

  private static WireMessage feature(float[] values) {
    MisuseException.requireGiven("values", values);
    byte[] packed = new byte[Math.multiplyExact(values.length, Float.BYTES)];
    ByteBuffer.wrap(packed).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().put(values);
    return packed(FLOATS, packed);
  }

  private static WireMessage feature(long[] values) {
    MisuseException.requireGiven("values", values);
    int bytes = 0;
    for (long value : values) {
      bytes = Math.addExact(bytes, CodedOutputStream.computeInt64SizeNoTag(value));
    }
    byte[] packed =
        WireMessage.bytes(
            bytes,
            target -> {
              for (long value : values) {
                target.writeInt64NoTag(value);
              }
            });
    return packed(INT64S, packed);
  }

  private static WireMessage packed(int kind, byte[] values) {
    WireMessage list = new WireMessage();
    return new WireMessage().add(kind, values.length == 0 ? list : list.add(1, values));
  }

  /// Returns the record: an example, or, if feature lists were put, a sequence example whose
  /// context has the other features.
  ///
  /// @throws MisuseException if the record is longer than [TfRecordOptions#MAX_RECORD_BYTES]
  public byte[] toBytes() {
    WireMessage example = new WireMessage().add(1, map(features));
    if (!lists.isEmpty()) {
      example.add(2, map(lists));
    }
    if (example.bytes() > TfRecordOptions.MAX_RECORD_BYTES) {
      throw new MisuseException(
          "a record must have at most "
              + TfRecordOptions.MAX_RECORD_BYTES
              + " bytes (had "
              + example.bytes()
              + ")");
    }
    return example.toBytes();
  }

  private static WireMessage map(Map<String, WireMessage> values) {
    WireMessage map = new WireMessage();
    values.forEach((name, value) ->
        map.add(1, new WireMessage().add(1, name.getBytes(StandardCharsets.UTF_8)).add(2, value)));
    return map;
  }
}
