// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedOutputStream;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.proto.Example;
import dev.gantry.formats.tfrecord.proto.Feature;
import dev.gantry.formats.tfrecord.proto.FeatureList;
import dev.gantry.formats.tfrecord.proto.FeatureLists;
import dev.gantry.formats.tfrecord.proto.Features;
import dev.gantry.formats.tfrecord.proto.SequenceExample;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.List;

/// What protobuf's generated parser makes of a record: the reference for our own readers.
record ProtobufReader(List<FeatureLayout> features, Features values, FeatureLists lists)
    implements ExampleReader {
  static ExampleReader.Choice of(List<FeatureLayout> features) {
    return record -> {
      ByteBuffer bytes = record.asByteBuffer();
      if (features.stream().noneMatch(FeatureLayout::steps)) {
        Features all = Example.parseFrom(bytes).getFeatures();
        return new ProtobufReader(features, all, FeatureLists.getDefaultInstance());
      }
      SequenceExample sequence = SequenceExample.parseFrom(bytes);
      return new ProtobufReader(features, sequence.getContext(), sequence.getFeatureLists());
    };
  }

  @Override
  public long steps(int feature) {
    String name = features.get(feature).name();
    return lists.containsFeatureList(name) ? list(name).getFeatureCount() : -1;
  }

  private FeatureList list(String name) {
    return lists.getFeatureListOrDefault(name, FeatureList.getDefaultInstance());
  }

  @Override
  public FeatureValue value(int feature) {
    return written(
        values.getFeatureOrDefault(features.get(feature).name(), Feature.getDefaultInstance()));
  }

  @Override
  public FeatureValue step(int feature, long step) {
    return written(list(features.get(feature).name()).getFeature((int) step));
  }

  /// The values, written the usual way.
  private static FeatureValue written(Feature feature) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    CodedOutputStream out = CodedOutputStream.newInstance(bytes);
    FeatureValue value = new FeatureValue();
    try {
      switch (feature.getKindCase()) {
        case BYTES_LIST -> {
          for (ByteString string : feature.getBytesList().getValueList()) {
            out.writeRawBytes(string);
          }
        }
        case FLOAT_LIST -> {
          for (float number : feature.getFloatList().getValueList()) {
            out.writeFloatNoTag(number);
          }
        }
        case INT64_LIST -> {
          for (long number : feature.getInt64List().getValueList()) {
            out.writeInt64NoTag(number);
          }
        }
        case KIND_NOT_SET -> {
          return value;
        }
      }
      out.flush();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    MemorySegment memory = MemorySegment.ofArray(bytes.toByteArray());
    switch (feature.getKindCase()) {
      case BYTES_LIST -> {
        value.begin(memory, FeatureSpec.Kind.BYTES);
        long at = 0;
        for (ByteString string : feature.getBytesList().getValueList()) {
          value.add(at, string.size(), 1);
          at += string.size();
        }
      }
      case FLOAT_LIST -> {
        value.begin(memory, FeatureSpec.Kind.FLOAT);
        value.add(0, memory.byteSize(), feature.getFloatList().getValueCount());
      }
      case INT64_LIST -> {
        value.begin(memory, FeatureSpec.Kind.INT64);
        value.add(0, memory.byteSize(), feature.getInt64List().getValueCount());
      }
      case KIND_NOT_SET -> {}
    }
    return value;
  }
}
