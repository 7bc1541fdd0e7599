package dev.gantry.formats.internal.examples;

import dev.gantry.formats.tfrecord.FeatureKind;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// One feature of a record, or one step of its feature list.
interface FeatureValue {
  /// Null where there is none: no feature of the name, or one that holds no list.
  @Nullable FeatureKind kind();

  /// How many values the list has; of bytes, strings.
  long count();

  /// Of bytes, the length of the first string.
  long stringBytes();

  /// Writes all values; of bytes, the first string.
  void copyTo(MemorySegment target, long offset);
}
