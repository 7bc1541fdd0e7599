// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.formats.tfrecord.FeatureSpec;
import java.util.List;

/// The longest value of each record of a dataset, if its bytes are stored as the batch has them: they can be read
/// straight to their place in the batch, which spares a copy. Where in a record the value lies is known only when the
/// record has been read, but it lies mostly where it lay in the record before. Thread-safe.
public final class StraightValue {
  /// The shortest value that is read straight: shorter ones are copied faster than they are read by a call of their own.
  private static final long LEAST_BYTES = 64 << 10;

  /// The value is no longer guessed after so many wrong guesses without a right one between them: each costs a read.
  private static final int MOST_WRONG = 8;

  private static final long UNKNOWN = -1;

  private static final StraightValue NONE =
      new StraightValue(ExampleDecoder.NONE, FeatureSpec.Kind.BYTES, 0);

  private final int feature;
  private final FeatureSpec.Kind kind;
  private final long bytes;
  private volatile long start = UNKNOWN;

  /// Threads may lose a count, which does not matter.
  private volatile int wrong;

  private StraightValue(int feature, FeatureSpec.Kind kind, long bytes) {
    this.feature = feature;
    this.kind = kind;
    this.bytes = bytes;
  }

  /// Chooses the feature with the longest value of those that each record has with the same length, and that are stored
  /// as the batch has them.
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

  /// Where the value probably lies, in bytes from a record's start; negative if that is not known.
  long guess() {
    return wrong < MOST_WRONG ? start : UNKNOWN;
  }

  /// Notes where the value lies in the record that was read.
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

  /// Whether the record has the value's bytes in one place.
  private boolean isWhole(ExampleReader read) {
    FeatureValue value = read.value(feature);
    return value.kind() == kind && value.pieces() == 1 && value.length() == bytes;
  }
}
