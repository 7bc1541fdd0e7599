package dev.gantry.formats.tfrecord.index;

import dev.gantry.formats.tfrecord.FeatureKind;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// What one record holds under one name, and where. Filled again for every record.
final class ScannedFeature {
  /// What a record has that lacks the feature.
  static final ScannedFeature MISSING = new ScannedFeature();

  private final long[] values = new long[IndexOptions.MOST_VALUES];
  private @Nullable FeatureKind kind;
  private final Set<FeatureKind> kindsBefore = EnumSet.noneOf(FeatureKind.class);
  private boolean ambiguous;
  private long count;
  private long pieces;
  private boolean unpacked;
  private int offset;
  private int length;

  /// Forgets all.
  void begin() {
    kind = null;
    kindsBefore.clear();
    ambiguous = false;
    forgetValues();
  }

  private void forgetValues() {
    count = 0;
    pieces = 0;
    unpacked = false;
    offset = 0;
    length = 0;
  }

  /// A list of this kind begins. One of another kind takes the place of what was there; one of the
  /// same kind goes on.
  void become(FeatureKind next) {
    if (kind != next) {
      // Back to a kind that was there before: C++ forgets its first values, Java takes them up
      // again.
      ambiguous |= !kindsBefore.add(next);
      kind = next;
      forgetValues();
    }
  }

  void addBytes(int at, int bytes) {
    count++;
    addPiece(at, bytes);
  }

  /// Floats that lie end to end.
  void addFloats(int at, int bytes, boolean packed) {
    if (bytes > 0) {
      count += bytes / Float.BYTES;
      unpacked |= !packed;
      addPiece(at, bytes);
    }
  }

  void addInt(long value) {
    if (count < values.length) {
      values[(int) count] = value;
    }
    count++;
  }

  private void addPiece(int at, int bytes) {
    pieces++;
    offset = at;
    length = bytes;
  }

  /// Null where the feature has none, or is missing.
  @Nullable FeatureKind kind() {
    return kind;
  }

  /// Strings of bytes, floats or integers.
  long count() {
    return count;
  }

  /// Of the value, in bytes from the start of the record; of no meaning for integers.
  int offset() {
    return offset;
  }

  /// Of the value, in bytes; of no meaning for integers.
  int length() {
    return length;
  }

  /// @param index less than [#count] and [IndexOptions#MOST_VALUES]
  long value(int index) {
    return values[index];
  }

  /// How many elements the value has.
  long elements() {
    return kind == FeatureKind.BYTES ? length : count;
  }

  /// Why there is no one place or no few integers that are the value; empty if there are.
  String obstacle() {
    if (kind == null) {
      return "it is missing";
    }
    if (ambiguous) {
      return "its kind changes to and fro, which not all parsers read alike";
    }
    if (count == 0) {
      return "it has no value";
    }
    return switch (kind) {
      case BYTES -> count == 1 ? "" : "it has " + count + " values, not one";
      case FLOAT ->
          pieces == 1
              ? ""
              : unpacked
                  ? "its " + count + " floats are not packed"
                  : "its floats lie in " + pieces + " places";
      case INT64 ->
          count <= values.length ? "" : "it has " + count + " integers, more than " + values.length;
    };
  }
}
