// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;

/// How things are called in an index.
final class IndexFormat {
  static final String FORMAT = "gantry-tfrecord-index";
  static final long VERSION = 1;

  /// What stands before a record's data.
  static final int HEADER_BYTES = TfRecordReader.HEADER_BYTES;

  /// What stands behind it.
  static final int FOOTER_BYTES = Integer.BYTES;

  static final int FRAMING_BYTES = HEADER_BYTES + FOOTER_BYTES;

  /// The tensor with the offset of each record's data in the file.
  static final String RECORD_OFFSET = "record/offset";

  /// Parts of what there is on a feature, and tensors: where in its record each value begins, how
  /// long it is where not all are alike, and integers.
  static final String OFFSET = "offset";

  static final String LENGTH = "length";
  static final String VALUES = "values";

  private static final String FEATURE = "feature/";

  private IndexFormat() {}

  /// The tensor, or the note, with a part of what there is on a feature. Parts have no slash, so
  /// the names of no two features make the same.
  static String tensor(String feature, String part) {
    return FEATURE + feature + "/" + part;
  }

  /// Whether a note is this part of what there is on some feature.
  static boolean isPart(String note, String part) {
    return note.startsWith(FEATURE)
        && note.endsWith("/" + part)
        && note.length() >= FEATURE.length() + 1 + part.length();
  }

  /// The feature of a note that [#isPart].
  static String feature(String note, String part) {
    return note.substring(FEATURE.length(), note.length() - part.length() - 1);
  }

  /// Bytes of one element where it can be read.
  static int elementBytes(FeatureSpec.Kind kind) {
    return switch (kind) {
      case BYTES -> Byte.BYTES;
      case FLOAT -> Float.BYTES;
      case INT64 -> Long.BYTES;
    };
  }

  /// Some elements, for a message.
  static String elements(FeatureSpec.Kind kind, long count) {
    return count
        + switch (kind) {
          case BYTES -> " bytes";
          case FLOAT -> " floats";
          case INT64 -> " integers";
        };
  }

  /// As the index spells it.
  static String text(FeatureSpec.Kind kind) {
    return kind.name().toLowerCase(Locale.ROOT);
  }

  static Optional<FeatureSpec.Kind> kind(String text) {
    return Arrays.stream(FeatureSpec.Kind.values())
        .filter(kind -> text(kind).equals(text))
        .findFirst();
  }
}
