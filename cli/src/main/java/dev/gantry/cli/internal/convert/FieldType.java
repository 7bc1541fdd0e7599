// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// The dtype and shape that a user wants a feature to have as a field.
public record FieldType(String name, DType dtype, TensorShape shape) {
  /// Matches `NAME=DTYPE[SHAPE]`. Sizes have at most 18 digits, so that a long can hold them. The
  /// name may be any text.
  private static final Pattern SPELLING =
      Pattern.compile(
          "(.+)=([A-Z0-9_]+) *\\[((?: *[0-9]{1,18} *(?:, *[0-9]{1,18} *)*)?)]", Pattern.DOTALL);

  /// Reads `NAME=DTYPE[SHAPE]`.
  public static final class Converter implements ITypeConverter<FieldType> {
    @Override
    public FieldType convert(String text) {
      Matcher spelled = SPELLING.matcher(text);
      if (!spelled.matches()) {
        throw new TypeConversionException(
            "must be NAME=DTYPE[SHAPE], such as image=U8[28,28] (was '" + text + "')");
      }
      Optional<DType> dtype = DType.named(spelled.group(2));
      TensorShape shape = TensorShape.of(dimensions(spelled.group(3)));
      if (dtype.isEmpty() || shape.elements().isEmpty()) {
        throw new TypeConversionException(
            "must have a known dtype, and a shape of less than 2^63 elements (was '" + text + "')");
      }
      return new FieldType(spelled.group(1), dtype.get(), shape);
    }

    private static long[] dimensions(String text) {
      return text.isEmpty()
          ? LongStream.empty().toArray()
          : Stream.of(text.split(",")).map(String::strip).mapToLong(Long::parseLong).toArray();
    }
  }
}
