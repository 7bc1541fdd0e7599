// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.npy;

import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import java.nio.ByteOrder;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// An element type as NumPy names it, such as `<f4`.
///
/// @param order the order of an element's bytes; little endian for elements of one byte
record NpyType(DType dtype, ByteOrder order) {
  /// Matches an optional byte order, the kind, and the size in bytes.
  private static final Pattern NUMBER = Pattern.compile("[<>|=]?([iufc])([0-9]{1,2})");

  private static final Pattern BOOLEAN = Pattern.compile("[<>|=]?(b1|\\?)");

  /// @param position the name's offset in the `.npy`
  static NpyType of(NpyInput input, long position, String name) {
    DType dtype = dtype(name).orElseThrow(() -> refusal(input, position, name));
    if (dtype.bits() == Byte.SIZE || name.startsWith("<")) {
      return new NpyType(dtype, ByteOrder.LITTLE_ENDIAN);
    }
    if (name.startsWith(">")) {
      return new NpyType(dtype, ByteOrder.BIG_ENDIAN);
    }
    throw input.malformed(
        position, "unknown-dtype", "dtype '" + name + "' does not say the order of its bytes");
  }

  private static Optional<DType> dtype(String name) {
    Matcher number = NUMBER.matcher(name);
    if (number.matches()) {
      int bits = Byte.SIZE * Integer.parseInt(number.group(2));
      return DType.named(number.group(1).toUpperCase(Locale.ROOT) + bits);
    }
    return BOOLEAN.matcher(name).matches() ? Optional.of(DType.BOOL) : Optional.empty();
  }

  private record Refusal(String kind, String words) {}

  private static MalformedFileException refusal(NpyInput input, long position, String name) {
    String bare = name.replaceFirst("^[<>|=]", "");
    Refusal refusal =
        switch (bare.isEmpty() ? ' ' : bare.charAt(0)) {
          case 'O' ->
              new Refusal("object-dtype", "holds Python objects, which Gantry does not read");
          case 'U', 'S', 'a' -> new Refusal("text-dtype", "is text, which no tensor holds");
          case 'V' -> new Refusal("structured-dtype", "is raw bytes of no known meaning");
          case 'M', 'm' -> new Refusal("time-dtype", "is of times, which no tensor holds");
          default -> new Refusal("unknown-dtype", "is none that Gantry reads");
        };
    return input.malformed(position, refusal.kind(), "dtype '" + name + "' " + refusal.words());
  }
}
