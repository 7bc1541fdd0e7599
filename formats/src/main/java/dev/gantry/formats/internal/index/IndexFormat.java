// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;

/// The names in an index.
final class IndexFormat {
  static final String FORMAT = "gantry-tfrecord-index";
  static final long VERSION = 1;

  /// The bytes of framing before a record's data.
  static final int HEADER_BYTES = TfRecordReader.HEADER_BYTES;

  /// The bytes of framing behind a record's data.
  static final int FOOTER_BYTES = Integer.BYTES;

  static final int FRAMING_BYTES = HEADER_BYTES + FOOTER_BYTES;

  /// The tensor with the offset of each record's data in the file.
  static final String RECORD_OFFSET = "record/offset";

  /// The parts of a feature that are tensors: where each value begins in its record, the values' lengths
  /// where they differ, and integers.
  static final String OFFSET = "offset";

  static final String LENGTH = "length";
  static final String VALUES = "values";

  private static final String FEATURE = "feature/";

  private IndexFormat() {}

  /// The name of the tensor or note with one part of a feature. Parts contain no slash, so the names for
  /// two features never collide.
  static String tensor(String feature, String part) {
    return FEATURE + feature + "/" + part;
  }

  /// Whether a note is this part of any feature.
  static boolean isPart(String note, String part) {
    return note.startsWith(FEATURE)
        && note.endsWith("/" + part)
        && note.length() >= FEATURE.length() + 1 + part.length();
  }

  /// The feature's name in a note that [#isPart].
  static String feature(String note, String part) {
    return note.substring(FEATURE.length(), note.length() - part.length() - 1);
  }

  /// The size of one element, in bytes, in a file or in the index.
  static int elementBytes(FeatureSpec.Kind kind) {
    return switch (kind) {
      case BYTES -> Byte.BYTES;
      case FLOAT -> Float.BYTES;
      case INT64 -> Long.BYTES;
    };
  }

  /// Describes some elements in words, for a message.
  static String elements(FeatureSpec.Kind kind, long count) {
    return count
        + switch (kind) {
          case BYTES -> " bytes";
          case FLOAT -> " floats";
          case INT64 -> " integers";
        };
  }

  /// The kind's name in an index.
  static String text(FeatureSpec.Kind kind) {
    return kind.name().toLowerCase(Locale.ROOT);
  }

  static Optional<FeatureSpec.Kind> kind(String text) {
    return Arrays.stream(FeatureSpec.Kind.values())
        .filter(kind -> text(kind).equals(text))
        .findFirst();
  }
}
