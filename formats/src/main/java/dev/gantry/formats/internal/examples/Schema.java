// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.protobuf.ProtobufVersion;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.formats.tfrecord.proto.Feature;
import dev.gantry.formats.tfrecord.proto.FeatureList;
import dev.gantry.formats.tfrecord.proto.SequenceExample;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/// Infers the features of a file's records from the first records.
public final class Schema {
  /// How many records are read by default.
  public static final int USUAL_RECORDS = 100;

  private Schema() {}

  /// Returns the features in the order of their names. A feature that all records have with the same length
  /// is fixed; a single number is a scalar. Other features vary up to the longest length that was seen, and
  /// are padded with 0 to the batch's longest. Strings of bytes have dtype U8. Features with several
  /// strings in a record, and features without any value, are left out.
  ///
  /// Files are read one after the other, only as far as the last record that is needed.
  ///
  /// @param files one or more
  /// @param records the most records to read
  /// @throws MalformedFileException if there are no records, a record is no example, or [TfRecordReader]
  ///     refuses a file
  public static List<FeatureSpec> infer(
      GantrySession session, List<Location> files, TfRecordOptions options, long records) {
    Map<String, Seen> values = new TreeMap<>();
    Map<String, Seen> lists = new TreeMap<>();
    long looked = 0;
    for (Location file : files) {
      if (looked >= records) {
        break;
      }
      try (TfRecordReader reader = TfRecordReader.open(session, file, options)) {
        while (looked < records && reader.next()) {
          RawRecord where = new RawRecord(file, reader.number(), reader.offset(), reader.record());
          SequenceExample example = parse(where);
          for (Map.Entry<String, Feature> entry : example.getContext().getFeatureMap().entrySet()) {
            values.computeIfAbsent(entry.getKey(), Seen::new).add(entry.getValue(), where);
          }
          for (Map.Entry<String, FeatureList> entry :
              example.getFeatureLists().getFeatureListMap().entrySet()) {
            lists.computeIfAbsent(entry.getKey(), Seen::new).add(entry.getValue(), where);
          }
          looked++;
        }
      }
    }
    if (looked == 0) {
      throw new MalformedFileException(
          files.getFirst(), 0, "no-records", "nothing to tell features from");
    }
    List<FeatureSpec> specs = new ArrayList<>();
    for (Seen seen : values.values()) {
      seen.feature(looked).ifPresent(specs::add);
    }
    for (Seen seen : lists.values()) {
      seen.steps(looked).ifPresent(specs::add);
    }
    return specs;
  }

  /// Parses a record as a sequence example; an example parses as one without lists.
  static SequenceExample parse(RawRecord record) {
    ProtobufVersion.requireMessages();
    try {
      return SequenceExample.parseFrom(record.data().asByteBuffer());
    } catch (InvalidProtocolBufferException e) {
      throw record.fault(ExampleDecoder.INVALID_PROTO, String.valueOf(e.getMessage()));
    }
  }

  /// Collects what the records show of one feature.
  private static final class Seen {
    private final String name;
    private Optional<FeatureSpec.Kind> kind = Optional.empty();
    private boolean plural;
    private boolean varies;

    /// The length of the values; -1 before the first one.
    private long length = -1;

    private long steps = -1;
    private boolean stepsVary;
    private long records;

    Seen(String name) {
      this.name = name;
    }

    void add(Feature feature, RawRecord where) {
      Optional<FeatureSpec.Kind> found =
          switch (feature.getKindCase()) {
            case BYTES_LIST -> Optional.of(FeatureSpec.Kind.BYTES);
            case FLOAT_LIST -> Optional.of(FeatureSpec.Kind.FLOAT);
            case INT64_LIST -> Optional.of(FeatureSpec.Kind.INT64);
            case KIND_NOT_SET -> Optional.empty();
          };
      if (found.isEmpty()) {
        return;
      }
      if (kind.isPresent() && !kind.equals(found)) {
        throw where.fault(
            ExampleDecoder.WRONG_KIND,
            "feature '" + name + "' is of kind " + found.get() + ", before of " + kind.get());
      }
      kind = found;
      records++;
      long here =
          switch (found.get()) {
            case BYTES -> {
              int strings = feature.getBytesList().getValueCount();
              plural |= strings > 1;
              yield strings == 0 ? 0 : feature.getBytesList().getValue(0).size();
            }
            case FLOAT -> feature.getFloatList().getValueCount();
            case INT64 -> feature.getInt64List().getValueCount();
          };
      varies |= length >= 0 && here != length;
      length = Math.max(length, here);
    }

    void add(FeatureList list, RawRecord where) {
      stepsVary |= steps >= 0 && steps != list.getFeatureCount();
      steps = Math.max(steps, list.getFeatureCount());
      long before = records;
      list.getFeatureList().forEach(feature -> add(feature, where));
      records = before + 1;
    }

    private DType dtype(FeatureSpec.Kind of) {
      return switch (of) {
        case BYTES -> DType.U8;
        case FLOAT -> DType.F32;
        case INT64 -> DType.I64;
      };
    }

    private TensorShape shape(FeatureSpec.Kind of) {
      return of != FeatureSpec.Kind.BYTES && length == 1
          ? TensorShape.of()
          : TensorShape.of(length);
    }

    Optional<FeatureSpec> feature(long looked) {
      return kind.filter(_ -> !plural)
          .map(of ->
              varies || records < looked
                  ? new FeatureSpec.VariableLength(
                      name, of, dtype(of), length, 0, FeatureSpec.PadTo.LONGEST)
                  : new FeatureSpec.FixedLength(name, of, dtype(of), shape(of), Optional.empty()));
    }

    Optional<FeatureSpec> steps(long looked) {
      return kind.filter(_ -> !plural && !varies)
          .map(of ->
              stepsVary || records < looked
                  ? new FeatureSpec.VariableSteps(
                      name, of, dtype(of), steps, shape(of), 0, FeatureSpec.PadTo.LONGEST)
                  : new FeatureSpec.FixedSteps(name, of, dtype(of), steps, shape(of)));
    }
  }
}
