// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.formats.tfrecord.FeatureSpec;
import java.util.List;

/// The longest value of each record of a dataset, if the record stores its bytes as the batch has
/// them. Such a value can be read straight into the batch, which spares a copy. The value's
/// offset in a record is known only when the record has been read, but it is mostly the same as
/// in the record before, so it is guessed. Thread-safe.
public final class StraightValue {
  /// The shortest value that is read straight. Copying a shorter value takes less time than
  /// another call to read it.
  private static final long LEAST_BYTES = 64 << 10;

  /// After this many wrong guesses in a row, the offset is no longer guessed, since each wrong
  /// guess costs a read.
  private static final int MOST_WRONG = 8;

  private static final long UNKNOWN = -1;

  private static final StraightValue NONE =
      new StraightValue(ExampleDecoder.NONE, FeatureSpec.Kind.BYTES, 0);

  private final int feature;
  private final FeatureSpec.Kind kind;
  private final long bytes;
  private volatile long start = UNKNOWN;

  /// Two threads may count one wrong guess only once; this does no harm.
  private volatile int wrong;

  private StraightValue(int feature, FeatureSpec.Kind kind, long bytes) {
    this.feature = feature;
    this.kind = kind;
    this.bytes = bytes;
  }

  /// Chooses the feature with the longest value among the features that have the same length in
  /// each record and are stored as the batch has them.
  static StraightValue of(List<FeatureLayout> features) {
    StraightValue best = NONE;
    for (int i = 0; i < features.size(); i++) {
      FeatureLayout each = features.get(i);
      long bytes = each.field().sampleBytes();
      if (each.exact()
          && !each.steps()
          && each.decoder().isEmpty()
          && each.kind() != FeatureSpec.Kind.INT64
          && bytes >= Math.max(LEAST_BYTES, best.bytes + 1)) {
        best = new StraightValue(i, each.kind(), bytes);
      }
    }
    return best;
  }

  int feature() {
    return feature;
  }

  long bytes() {
    return bytes;
  }

  /// The probable offset of the value, in bytes from a record's start; negative if there is no
  /// guess.
  long guess() {
    return wrong < MOST_WRONG ? start : UNKNOWN;
  }

  /// Notes the value's offset in the record that was read.
  void learn(ExampleReader read) {
    if (feature != ExampleDecoder.NONE) {
      start = isWhole(read) ? read.value(feature).offset() : UNKNOWN;
    }
  }

  /// Whether a guess was right for the record that was read.
  boolean isAt(long guess, ExampleReader read) {
    boolean right = isWhole(read) && read.value(feature).offset() == guess;
    wrong = right ? 0 : wrong + 1;
    return right;
  }

  /// Whether the record has all of the value's bytes in one piece.
  private boolean isWhole(ExampleReader read) {
    FeatureValue value = read.value(feature);
    return value.kind() == kind && value.pieces() == 1 && value.length() == bytes;
  }
}
