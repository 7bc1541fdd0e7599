// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.webdataset;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.gantry.formats.images.ImageDecoding;
import dev.gantry.formats.spi.FieldDecoder;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/// Says how the members of a WebDataset archive that have one extension become a field of a
/// batch.
///
/// An extension is the part of a member's base name after its first dot, in lower case, such as
/// `jpg` or `seg.png`. You may give several extensions with `;` between them, as in
/// `jpg;jpeg;png`: each sample must have a member with one of them, and the first extension is
/// the field's name.
public sealed interface MemberField {
  /// The suffix of a [#lengthField]'s name.
  String LENGTH_SUFFIX = "_length";

  /// The extension, or several with `;` between them.
  String extension();

  /// The extensions, one or more.
  default List<String> extensions() {
    return List.of(extension().split(";", -1));
  }

  /// The field's name.
  default String name() {
    return extensions().getFirst();
  }

  /// The field that holds the lengths of the values without their padding; empty if the values
  /// are not padded.
  default Optional<Field> lengthField() {
    return this instanceof Padded
        ? Optional.of(new Field(name() + LENGTH_SUFFIX, DType.I64, TensorShape.of()))
        : Optional.empty();
  }

  /// Each member holds only the elements, little endian, in C order. All members have the same
  /// size, so their bytes go from the file to the device as they are.
  record Raw(String extension, DType dtype, TensorShape shape) implements MemberField {
    public Raw {
      check(extension);
      Field _ = new Field("raw", dtype, shape);
    }
  }

  /// Each member is a NumPy array; all have one dtype and shape, and are little endian and in C
  /// order, so their elements go from the file to the device as they are.
  ///
  /// @param extension `npy`, or an extension that ends in `.npy`
  record Npy(String extension) implements MemberField {
    public Npy {
      check(extension);
      if (!Stream.of(extension.split(";", -1)).allMatch(Npy::isIndexed)) {
        throw new MisuseException(
            "the extension of NumPy arrays must be npy, or end in .npy (was '" + extension + "')");
      }
    }

    /// Whether the index of an archive has the headers of the arrays with this extension.
    private static boolean isIndexed(String extension) {
      return extension.equals("npy") || extension.endsWith(".npy");
    }
  }

  /// Each member is an integer in decimal digits, such as a class, which becomes an I64.
  record IntegerText(String extension) implements MemberField {
    public IntegerText {
      check(extension);
    }
  }

  /// The members have different lengths, as text or JSON does; each becomes `most` U8 elements,
  /// padded with zeros. A second field, whose name ends in `_length`, holds each member's length
  /// in bytes.
  ///
  /// @param most the length of the longest value in bytes; a longer value is an error when the
  ///     dataset is built
  record Padded(String extension, int most) implements MemberField {
    public Padded {
      check(extension);
      MisuseException.requireRange(extension + ": most", most, 1, Integer.MAX_VALUE);
    }
  }

  /// A decoder turns each member into elements of a fixed dtype and shape while batches are read
  /// ahead.
  record Decoded(String extension, DType dtype, TensorShape shape, FieldDecoder decoder)
      implements MemberField {
    public Decoded {
      check(extension);
      MisuseException.requireGiven("decoder", decoder);
      Field _ = new Field("decoded", dtype, shape);
    }
  }

  /// @see Raw
  static MemberField raw(String extension, DType dtype, long... shape) {
    return new Raw(extension, dtype, TensorShape.of(shape));
  }

  /// @see Npy
  static MemberField npy(String extension) {
    return new Npy(extension);
  }

  /// @see IntegerText
  static MemberField integer(String extension) {
    return new IntegerText(extension);
  }

  /// @see Padded
  static MemberField padded(String extension, int most) {
    return new Padded(extension, most);
  }

  /// @see Decoded
  static MemberField decoded(String extension, FieldDecoder decoder, DType dtype, long... shape) {
    return new Decoded(extension, dtype, TensorShape.of(shape), decoder);
  }

  /// Decodes JPEG or PNG pictures into U8 values of the shape (height, width, 3).
  static MemberField image(String extension, ImageDecoding decoding) {
    Field field = MisuseException.requireGiven("decoding", decoding).field("image");
    return new Decoded(extension, field.dtype(), field.shape(), decoding);
  }

  private static void check(String extensions) {
    for (String extension : MisuseException.requireGiven("extension", extensions).split(";", -1)) {
      if (extension.isEmpty() || extension.startsWith(".") || extension.indexOf('/') >= 0) {
        throw new MisuseException(
            "an extension must be such as jpg, or several such as jpg;png (was '"
                + extensions
                + "')");
      }
    }
  }
}
