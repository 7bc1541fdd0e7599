package dev.gantry.formats.internal.examples;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import dev.gantry.formats.tfrecord.FeatureKind;
import dev.gantry.formats.tfrecord.proto.Example;
import dev.gantry.formats.tfrecord.proto.Feature;
import dev.gantry.formats.tfrecord.proto.FeatureList;
import dev.gantry.formats.tfrecord.proto.FeatureLists;
import dev.gantry.formats.tfrecord.proto.Features;
import dev.gantry.formats.tfrecord.proto.SequenceExample;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A record as protobuf reads it, however it is written.
final class ParsedExample implements ExampleValues {
  private final List<FeatureLayout> features;
  private final Features values;
  private final FeatureLists lists;

  private ParsedExample(List<FeatureLayout> features, Features values, FeatureLists lists) {
    this.features = features;
    this.values = values;
    this.lists = lists;
  }

  /// @throws InvalidProtocolBufferException if the record is no such message
  static ParsedExample parse(List<FeatureLayout> features, MemorySegment record)
      throws InvalidProtocolBufferException {
    ByteBuffer bytes = record.asByteBuffer();
    if (features.stream().noneMatch(FeatureLayout::steps)) {
      Features all = Example.parseFrom(bytes).getFeatures();
      return new ParsedExample(features, all, FeatureLists.getDefaultInstance());
    }
    SequenceExample sequence = SequenceExample.parseFrom(bytes);
    return new ParsedExample(features, sequence.getContext(), sequence.getFeatureLists());
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
    return new Value(
        values.getFeatureOrDefault(features.get(feature).name(), Feature.getDefaultInstance()));
  }

  @Override
  public FeatureValue step(int feature, long step) {
    return new Value(list(features.get(feature).name()).getFeature((int) step));
  }

  private record Value(Feature feature) implements FeatureValue {
    private static final ValueLayout.OfLong LONG =
        ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfFloat FLOAT =
        ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    @Override
    public @Nullable FeatureKind kind() {
      return switch (feature.getKindCase()) {
        case BYTES_LIST -> FeatureKind.BYTES;
        case FLOAT_LIST -> FeatureKind.FLOAT;
        case INT64_LIST -> FeatureKind.INT64;
        case KIND_NOT_SET -> null;
      };
    }

    @Override
    public long count() {
      return switch (feature.getKindCase()) {
        case BYTES_LIST -> feature.getBytesList().getValueCount();
        case FLOAT_LIST -> feature.getFloatList().getValueCount();
        case INT64_LIST -> feature.getInt64List().getValueCount();
        case KIND_NOT_SET -> 0;
      };
    }

    @Override
    public long stringBytes() {
      return feature.getBytesList().getValueCount() == 0
          ? 0
          : feature.getBytesList().getValue(0).size();
    }

    @Override
    public void copyTo(MemorySegment target, long offset) {
      long at = offset;
      switch (feature.getKindCase()) {
        case BYTES_LIST -> {
          if (feature.getBytesList().getValueCount() > 0) {
            ByteString first = feature.getBytesList().getValue(0);
            MemorySegment bytes = MemorySegment.ofBuffer(first.asReadOnlyByteBuffer());
            MemorySegment.copy(bytes, 0, target, at, bytes.byteSize());
          }
        }
        case FLOAT_LIST -> {
          for (int i = 0; i < feature.getFloatList().getValueCount(); i++, at += Float.BYTES) {
            target.set(FLOAT, at, feature.getFloatList().getValue(i));
          }
        }
        case INT64_LIST -> {
          for (int i = 0; i < feature.getInt64List().getValueCount(); i++, at += Long.BYTES) {
            target.set(LONG, at, feature.getInt64List().getValue(i));
          }
        }
        case KIND_NOT_SET -> {}
      }
    }
  }
}
