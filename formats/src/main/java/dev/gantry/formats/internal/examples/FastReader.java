// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.formats.internal.examples.WireCursor.Unusual;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/// Finds the features of a record that is written the usual way: each map entry has its key before its
/// value, no name comes twice, lists are packed, and no field is unknown. [CompleteReader] reads other
/// records.
///
/// It skips the values of features that are not wanted.
final class FastReader implements ExampleReader {
  /// The tag of field 1, length-delimited: an entry, a key or a list of values.
  private static final int FIRST = 0x0a;

  private static final int SECOND = 0x12;
  private static final int THIRD = 0x1a;

  private final List<FeatureLayout> features;
  private final MemorySegment[] keys;
  private final boolean hasSteps;
  private final WireCursor cursor = new WireCursor();

  /// The features' values; for a feature list, the values of the current step.
  private final FeatureValue[] values;

  private final boolean[] found;

  /// Each list's number of steps, the offset of its next step, and its end.
  private final long[] steps;

  private final long[] next;
  private final long[] end;
  private MemorySegment record = MemorySegment.NULL;

  /// The feature at which the search for a name begins: records mostly have the same features in the same order.
  private int guess;

  FastReader(List<FeatureLayout> features) {
    this.features = features;
    int count = features.size();
    keys = new MemorySegment[count];
    values = new FeatureValue[count];
    for (int i = 0; i < count; i++) {
      keys[i] = features.get(i).key();
      values[i] = new FeatureValue();
    }
    found = new boolean[count];
    steps = new long[count];
    next = new long[count];
    end = new long[count];
    hasSteps = features.stream().anyMatch(FeatureLayout::steps);
  }

  /// @return whether the record is written the usual way, so that its values can be asked for
  boolean reads(MemorySegment bytes) {
    record = bytes;
    guess = 0;
    for (int i = 0; i < values.length; i++) {
      found[i] = false;
      values[i].clear();
      steps[i] = -1;
    }
    try {
      message(bytes.byteSize());
      return true;
    } catch (Unusual _) {
      return false;
    }
  }

  /// Reads a message: field 1 holds features, and field 2 of a sequence example holds feature lists.
  private void message(long messageEnd) {
    cursor.start(record);
    while (cursor.at() < messageEnd) {
      int tag = cursor.tag(messageEnd);
      long fieldEnd = cursor.fieldEnd(messageEnd);
      switch (tag) {
        case FIRST -> map(fieldEnd, false);
        case SECOND -> {
          if (hasSteps) {
            map(fieldEnd, true);
          }
        }
        default -> throw new Unusual();
      }
      cursor.moveTo(fieldEnd);
    }
  }

  private void map(long mapEnd, boolean lists) {
    while (cursor.at() < mapEnd) {
      require(FIRST, mapEnd);
      long entryEnd = cursor.fieldEnd(mapEnd);
      require(FIRST, entryEnd);
      long keyEnd = cursor.fieldEnd(entryEnd);
      int feature = feature(cursor.at(), keyEnd, lists);
      cursor.moveTo(keyEnd);
      require(SECOND, entryEnd);
      requireLast(entryEnd);
      if (feature >= 0) {
        take(feature, entryEnd);
      }
      cursor.moveTo(entryEnd);
    }
  }

  private void require(int tag, long limit) {
    if (cursor.tag(limit) != tag) {
      throw new Unusual();
    }
  }

  /// Requires that the current field is the last of its message.
  private void requireLast(long messageEnd) {
    if (cursor.fieldEnd(messageEnd) != messageEnd) {
      throw new Unusual();
    }
  }

  /// @return the number of the feature with this key, or -1
  private int feature(long keyStart, long keyEnd, boolean lists) {
    for (int i = 0; i < keys.length; i++) {
      int candidate = guess + i < keys.length ? guess + i : guess + i - keys.length;
      MemorySegment key = keys[candidate];
      if (key.byteSize() == keyEnd - keyStart
          && features.get(candidate).steps() == lists
          && MemorySegment.mismatch(record, keyStart, keyEnd, key, 0, key.byteSize()) < 0) {
        guess = candidate + 1 == keys.length ? 0 : candidate + 1;
        return candidate;
      }
    }
    for (long at = keyStart; at < keyEnd; at++) {
      if (record.get(ValueLayout.JAVA_BYTE, at) < 0) {
        // The name may be invalid UTF-8, which protobuf refuses.
        throw new Unusual();
      }
    }
    return -1;
  }

  private void take(int feature, long valueEnd) {
    if (found[feature]) {
      // A name comes twice: the last one counts, which is for the complete reader.
      throw new Unusual();
    }
    found[feature] = true;
    if (!features.get(feature).steps()) {
      readValue(values[feature], valueEnd);
      return;
    }
    long first = cursor.at();
    long count = 0;
    while (cursor.at() < valueEnd) {
      readStep(feature, valueEnd);
      count++;
    }
    steps[feature] = count;
    next[feature] = first;
    end[feature] = valueEnd;
  }

  private void readStep(int feature, long listEnd) {
    require(FIRST, listEnd);
    long stepEnd = cursor.fieldEnd(listEnd);
    readValue(values[feature], stepEnd);
    cursor.moveTo(stepEnd);
  }

  /// Reads a `Feature` message with one list, of one string or of packed numbers.
  private void readValue(FeatureValue value, long valueEnd) {
    value.clear();
    if (cursor.at() == valueEnd) {
      return;
    }
    FeatureSpec.Kind kind =
        switch (cursor.tag(valueEnd)) {
          case FIRST -> FeatureSpec.Kind.BYTES;
          case SECOND -> FeatureSpec.Kind.FLOAT;
          case THIRD -> FeatureSpec.Kind.INT64;
          default -> throw new Unusual();
        };
    requireLast(valueEnd);
    value.begin(record, kind);
    if (cursor.at() == valueEnd) {
      return;
    }
    require(FIRST, valueEnd);
    requireLast(valueEnd);
    long start = cursor.at();
    long length = valueEnd - start;
    long count =
        switch (kind) {
          case BYTES -> 1;
          case FLOAT -> {
            if (length % Float.BYTES != 0) {
              throw new Unusual();
            }
            yield length / Float.BYTES;
          }
          case INT64 -> cursor.varints(valueEnd);
        };
    value.add(start, length, count);
  }

  @Override
  public long steps(int feature) {
    return steps[feature];
  }

  @Override
  public FeatureValue value(int feature) {
    return values[feature];
  }

  @Override
  public FeatureValue step(int feature, long step) {
    cursor.moveTo(next[feature]);
    readStep(feature, end[feature]);
    next[feature] = cursor.at();
    return values[feature];
  }
}
