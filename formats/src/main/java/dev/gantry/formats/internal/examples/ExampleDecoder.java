// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;

/// Decodes the features of records into a batch's memory.
///
/// If a record does not fit the features' specifications, the decoder throws a
/// [MalformedFileException] of one of these kinds: `invalid-proto`, `missing-feature`,
/// `wrong-kind`, `wrong-length`, `undecodable`. Not thread-safe: each thread needs its own
/// decoder.
public final class ExampleDecoder {
  static final String INVALID_PROTO = "invalid-proto";
  static final String MISSING_FEATURE = "missing-feature";
  static final String WRONG_KIND = "wrong-kind";
  static final String WRONG_LENGTH = "wrong-length";
  static final String UNDECODABLE = "undecodable";

  /// Stands for no feature where a feature's number is expected.
  static final int NONE = -1;

  private static final ValueLayout.OfLong LENGTH =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final List<FeatureLayout> features;
  private final long epoch;
  private final ExampleReader reader;

  /// @param epoch the epoch's number; it and a record's file and number give the seed for
  ///     decoding the record's strings
  ExampleDecoder(List<FeatureLayout> features, long epoch) {
    this(features, epoch, ExampleReader.decoding(features));
  }

  ExampleDecoder(List<FeatureLayout> features, long epoch, ExampleReader reader) {
    this.features = features;
    this.epoch = epoch;
    this.reader = reader;
  }

  /// Lengthens the rows of features that are padded to the batch's longest value, so that they
  /// hold a record's values.
  ///
  /// @param rows each feature's row length in units, which this changes
  public void extend(RawRecord record, long[] rows) {
    reader.read(record);
    for (int i = 0; i < rows.length; i++) {
      if (features.get(i).toLongest()) {
        rows[i] = Math.max(rows[i], units(i, record));
      }
    }
  }

  /// Writes a record's features.
  ///
  /// @param batch the batch's memory, laid out as this decoder's layout says
  /// @param rows each feature's row length in units, long enough for the record
  public void decode(
      RawRecord record, MemorySegment batch, DecodedLayout layout, long[] rows, int sample) {
    var _ = read(record);
    write(record, batch, layout, rows, sample, NONE);
  }

  /// Finds the values of a record, which [#write] writes then.
  ExampleReader read(RawRecord record) {
    reader.read(record);
    return reader;
  }

  /// Writes the features of the record that was read last.
  ///
  /// @param except the number of a feature that is left out, or [#NONE]
  void write(
      RawRecord record,
      MemorySegment batch,
      DecodedLayout layout,
      long[] rows,
      int sample,
      int except) {
    for (int i = 0; i < rows.length; i++) {
      if (i == except) {
        continue;
      }
      FeatureLayout feature = features.get(i);
      long offset = layout.offset(i, sample, rows);
      long end = offset + layout.rowBytes(i, rows);
      long units = units(i, record);
      if (layout.hasLengths(i)) {
        batch.set(LENGTH, layout.lengthOffset(i, sample), units);
      }
      if (units < 0) {
        fill(batch, offset, end, absent(feature, record));
      } else if (units * feature.unitBytes() > end - offset) {
        throw new MisuseException("rows too short for feature '" + feature.name() + "'");
      } else {
        if (feature.decoder().isPresent()) {
          record.decode(
              feature.name(),
              feature.decoder().get(),
              epoch,
              reader.value(i).firstString(),
              batch.asSlice(offset, end - offset));
        } else {
          write(i, units, batch, offset, record);
        }
        fill(batch, offset + units * feature.unitBytes(), end, feature.padding());
      }
    }
  }

  private static MemorySegment absent(FeatureLayout feature, RawRecord where) {
    return feature
        .absent()
        .orElseThrow(() ->
            where.fault(MISSING_FEATURE, "the record lacks feature '" + feature.name() + "'"));
  }

  /// Returns how many units of a feature a record has. If the record lacks the feature, this is
  /// -1 for a feature of a fixed length, and 0 for any other feature.
  private long units(int number, RawRecord where) {
    FeatureLayout feature = features.get(number);
    long units;
    if (feature.steps()) {
      units = reader.steps(number);
    } else {
      FeatureValue value = reader.value(number);
      units = value.kind() == null ? -1 : elements(value, feature, where, "");
    }
    if (units < 0) {
      return feature.exact() ? -1 : 0;
    }
    if (feature.exact() ? units != feature.most() : units > feature.most()) {
      throw wrongLength(
          feature, where, "", units, (feature.exact() ? "" : "up to ") + feature.most());
    }
    return units;
  }

  private void write(int number, long units, MemorySegment batch, long offset, RawRecord where) {
    FeatureLayout feature = features.get(number);
    if (!feature.steps()) {
      if (units > 0) {
        reader.value(number).copyTo(batch, offset);
      }
      return;
    }
    for (long step = 0; step < units; step++) {
      FeatureValue value = reader.step(number);
      String which = "at step " + step + " ";
      if (value.kind() == null) {
        throw fault(where, MISSING_FEATURE, feature, which + "has no value");
      }
      long elements = elements(value, feature, where, which);
      if (elements != feature.unitElements()) {
        throw wrongLength(feature, where, which, elements, "" + feature.unitElements());
      }
      value.copyTo(batch, offset + step * feature.unitBytes());
    }
  }

  /// How many elements of the feature's dtype a value has.
  private static long elements(
      FeatureValue value, FeatureLayout feature, RawRecord where, String which) {
    if (value.kind() != feature.kind()) {
      throw fault(
          where,
          WRONG_KIND,
          feature,
          which + "is of kind " + value.kind() + ", not " + feature.kind());
    }
    if (feature.kind() != FeatureSpec.Kind.BYTES || value.count() == 0) {
      return value.count();
    }
    if (value.count() > 1) {
      throw fault(
          where, WRONG_LENGTH, feature, which + "has " + value.count() + " strings, not one");
    }
    if (feature.decoder().isPresent()) {
      return feature.most();
    }
    if (value.length() % feature.elementBytes() != 0) {
      throw fault(
          where,
          WRONG_LENGTH,
          feature,
          which + "has " + value.length() + " bytes, not a multiple of " + feature.elementBytes());
    }
    return value.length() / feature.elementBytes();
  }

  private static MalformedFileException wrongLength(
      FeatureLayout feature, RawRecord where, String which, long length, String wanted) {
    return fault(where, WRONG_LENGTH, feature, which + "has length " + length + ", not " + wanted);
  }

  private static MalformedFileException fault(
      RawRecord where, String kind, FeatureLayout feature, String detail) {
    return where.fault(kind, "feature '" + feature.name() + "' " + detail);
  }

  /// Fills a range of the batch with copies of an element.
  private static void fill(MemorySegment batch, long from, long to, MemorySegment element) {
    if (from == to) {
      return;
    }
    MemorySegment row = batch.asSlice(from, to - from);
    MemorySegment.copy(element, 0, row, 0, element.byteSize());
    for (long done = element.byteSize(); done < row.byteSize(); ) {
      long step = Math.min(done, row.byteSize() - done);
      MemorySegment.copy(row, 0, row, done, step);
      done += step;
    }
  }
}
