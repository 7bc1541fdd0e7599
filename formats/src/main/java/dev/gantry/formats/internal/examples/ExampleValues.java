// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.lang.foreign.MemorySegment;
import java.util.Collection;
import java.util.List;
import java.util.Optional;

/// Reads the features of one record after the other, of any kinds and lengths. Not thread-safe.
public final class ExampleValues {
  private final CompleteReader reader;

  /// @param names the wanted features' names; empty for all
  public ExampleValues(List<String> names) {
    reader = CompleteReader.of(names, CompleteReader.Limits.NONE);
  }

  /// Reads a record. Its bytes must stay valid until the next call.
  ///
  /// @throws dev.gantry.core.MalformedFileException of kind `invalid-proto`
  public void read(RawRecord record) {
    try {
      reader.read(record.data());
    } catch (InvalidProtocolBufferException | CompleteReader.LimitException e) {
      throw record.fault(
          ExampleDecoder.INVALID_PROTO, "byte " + reader.position() + ": " + e.getMessage());
    }
  }

  /// The names of the wanted features that the record has.
  public Collection<String> names() {
    return reader.names();
  }

  /// The kind of a feature; empty if the record lacks the feature, or it holds no list.
  public Optional<FeatureSpec.Kind> kind(String feature) {
    return Optional.ofNullable(reader.feature(feature).kind());
  }

  /// How many values the feature has; for BYTES, how many strings.
  public int count(String feature) {
    return Math.toIntExact(reader.feature(feature).count());
  }

  /// The values of a feature of kind INT64.
  public long[] int64s(String feature) {
    long[] values = new long[count(feature)];
    MemorySegment bytes = MemorySegment.ofArray(values);
    reader.feature(feature).copyTo(bytes, 0);
    return values;
  }

  /// The values of a feature of kind FLOAT.
  public float[] floats(String feature) {
    float[] values = new float[count(feature)];
    MemorySegment bytes = MemorySegment.ofArray(values);
    reader.feature(feature).copyTo(bytes, 0);
    return values;
  }

  /// One string of a feature of kind BYTES.
  public byte[] string(String feature, int number) {
    return reader.feature(feature).string(number);
  }
}
