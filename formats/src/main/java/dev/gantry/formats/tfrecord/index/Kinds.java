package dev.gantry.formats.tfrecord.index;

import dev.gantry.formats.tfrecord.FeatureKind;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;

/// What an index has to say on kinds of features. Elements are bytes, floats or integers.
final class Kinds {
  private Kinds() {}

  /// Bytes of one element where it can be read.
  static int elementBytes(FeatureKind kind) {
    return switch (kind) {
      case BYTES -> Byte.BYTES;
      case FLOAT -> Float.BYTES;
      case INT64 -> Long.BYTES;
    };
  }

  /// Some elements, for a message.
  static String elements(FeatureKind kind, long count) {
    return count
        + switch (kind) {
          case BYTES -> " bytes";
          case FLOAT -> " floats";
          case INT64 -> " integers";
        };
  }

  /// As the index spells it.
  static String text(FeatureKind kind) {
    return kind.name().toLowerCase(Locale.ROOT);
  }

  static Optional<FeatureKind> of(String text) {
    return Arrays.stream(FeatureKind.values()).filter(kind -> text(kind).equals(text)).findFirst();
  }
}
