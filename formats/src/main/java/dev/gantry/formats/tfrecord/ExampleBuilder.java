// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.MessageLite;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.protobuf.ProtobufVersion;
import dev.gantry.formats.tfrecord.proto.BytesList;
import dev.gantry.formats.tfrecord.proto.Example;
import dev.gantry.formats.tfrecord.proto.Feature;
import dev.gantry.formats.tfrecord.proto.FeatureList;
import dev.gantry.formats.tfrecord.proto.FeatureLists;
import dev.gantry.formats.tfrecord.proto.Features;
import dev.gantry.formats.tfrecord.proto.FloatList;
import dev.gantry.formats.tfrecord.proto.Int64List;
import dev.gantry.formats.tfrecord.proto.SequenceExample;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// Makes a `tf.train.Example`, or a `SequenceExample`, feature by feature; a feature that is put
/// twice has its last value. The same features give the same bytes. Not thread-safe.
public final class ExampleBuilder {
  private final boolean sorted;
  private final Map<String, Feature> features;
  private final Map<String, FeatureList> lists;

  private ExampleBuilder(boolean sorted) {
    ProtobufVersion.requireMessages();
    this.sorted = sorted;
    features = sorted ? new TreeMap<>() : new LinkedHashMap<>();
    lists = sorted ? new TreeMap<>() : new LinkedHashMap<>();
  }

  /// With features in the order of their names, as TensorFlow writes them when asked for the same
  /// bytes every time.
  public ExampleBuilder() {
    this(true);
  }

  /// With features in the order in which their names are put first.
  public static ExampleBuilder inOrderOfInsertion() {
    return new ExampleBuilder(false);
  }

  /// Puts a feature of kind BYTES, each value a string; it takes the place of an earlier one of its name.
  public ExampleBuilder bytes(String name, byte[]... values) {
    features.put(name, feature(values));
    return this;
  }

  /// Puts a feature of kind FLOAT; it takes the place of an earlier one of its name.
  public ExampleBuilder floats(String name, float... values) {
    features.put(name, feature(values));
    return this;
  }

  /// Puts a feature of kind INT64; it takes the place of an earlier one of its name.
  public ExampleBuilder int64s(String name, long... values) {
    features.put(name, feature(values));
    return this;
  }

  /// One step for each of `steps`, of one value.
  public ExampleBuilder bytesSteps(String name, List<byte[]> steps) {
    return steps(name, steps.stream().map(step -> feature(new byte[][] {step})).toList());
  }

  /// One step for each of `steps`.
  public ExampleBuilder floatSteps(String name, List<float[]> steps) {
    return steps(name, steps.stream().map(ExampleBuilder::feature).toList());
  }

  /// One step for each of `steps`.
  public ExampleBuilder int64Steps(String name, List<long[]> steps) {
    return steps(name, steps.stream().map(ExampleBuilder::feature).toList());
  }

  private ExampleBuilder steps(String name, List<Feature> steps) {
    lists.put(name, FeatureList.newBuilder().addAllFeature(steps).build());
    return this;
  }

  private static Feature feature(byte[][] values) {
    BytesList.Builder list = BytesList.newBuilder();
    for (byte[] value : values) {
      list.addValue(ByteString.copyFrom(value));
    }
    return Feature.newBuilder().setBytesList(list).build();
  }

  private static Feature feature(float[] values) {
    FloatList.Builder list = FloatList.newBuilder();
    for (float value : values) {
      list.addValue(value);
    }
    return Feature.newBuilder().setFloatList(list).build();
  }

  private static Feature feature(long[] values) {
    Int64List.Builder list = Int64List.newBuilder();
    for (long value : values) {
      list.addValue(value);
    }
    return Feature.newBuilder().setInt64List(list).build();
  }

  /// @throws MisuseException if features of several steps were put, for which an example has no
  ///     place
  public Example toExample() {
    if (!lists.isEmpty()) {
      throw new MisuseException("an example holds no features of several steps: " + lists.keySet());
    }
    return Example.newBuilder().setFeatures(Features.newBuilder().putAllFeature(features)).build();
  }

  /// The features of one step are the sequence's context.
  public SequenceExample toSequenceExample() {
    return SequenceExample.newBuilder()
        .setContext(Features.newBuilder().putAllFeature(features))
        .setFeatureLists(FeatureLists.newBuilder().putAllFeatureList(lists))
        .build();
  }

  /// The record: an example, or a sequence example where features of several steps were put.
  public byte[] toBytes() {
    MessageLite message = lists.isEmpty() ? toExample() : toSequenceExample();
    byte[] bytes = new byte[message.getSerializedSize()];
    CodedOutputStream out = CodedOutputStream.newInstance(bytes);
    if (sorted) {
      out.useDeterministicSerialization();
    }
    try {
      message.writeTo(out);
      out.checkNoSpaceLeft();
    } catch (IOException e) {
      throw new UncheckedIOException("memory of the right size cannot be written to", e);
    }
    return bytes;
  }
}
