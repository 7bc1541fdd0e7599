package dev.gantry.formats.tfrecord.index;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;

/// What the values of a feature are, as `tf.train.Feature` has it.
public enum FeatureKind {
  /// Strings of bytes; an element is one byte.
  BYTES(1, "bytes"),
  /// 32 bits each.
  FLOAT(Float.BYTES, "floats"),
  /// Varints, which the index holds decoded.
  INT64(Long.BYTES, "integers");

  private final int elementBytes;
  private final String elements;

  FeatureKind(int elementBytes, String elements) {
    this.elementBytes = elementBytes;
    this.elements = elements;
  }

  /// Bytes of one element where it can be read.
  int elementBytes() {
    return elementBytes;
  }

  /// Some elements, for a message.
  String elements(long count) {
    return count + " " + elements;
  }

  /// As the index spells it.
  String text() {
    return name().toLowerCase(Locale.ROOT);
  }

  static Optional<FeatureKind> of(String text) {
    return Arrays.stream(values()).filter(kind -> kind.text().equals(text)).findFirst();
  }
}
