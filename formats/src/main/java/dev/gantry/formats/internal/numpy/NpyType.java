// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

import dev.gantry.core.DType;
import java.nio.ByteOrder;

/// An element type as NumPy names it, such as `<f4`.
///
/// @param order the order of an element's bytes; little endian for elements of one byte
record NpyType(DType dtype, ByteOrder order) {
  /// @param position the name's offset in the `.npy`
  static NpyType of(NpyInput input, long position, String name) {
    String kind = name.isEmpty() ? "" : name.substring("<>|=".indexOf(name.charAt(0)) >= 0 ? 1 : 0);
    DType dtype =
        switch (kind) {
          case "b1", "?" -> DType.BOOL;
          case "i1" -> DType.I8;
          case "u1" -> DType.U8;
          case "i2" -> DType.I16;
          case "u2" -> DType.U16;
          case "i4" -> DType.I32;
          case "u4" -> DType.U32;
          case "i8" -> DType.I64;
          case "u8" -> DType.U64;
          case "f2" -> DType.F16;
          case "f4" -> DType.F32;
          case "f8" -> DType.F64;
          case "c8" -> DType.C64;
          default -> throw refusal(input, position, name, kind);
        };
    if (dtype.bits() == Byte.SIZE || name.startsWith("<")) {
      return new NpyType(dtype, ByteOrder.LITTLE_ENDIAN);
    }
    if (name.startsWith(">")) {
      return new NpyType(dtype, ByteOrder.BIG_ENDIAN);
    }
    throw input.malformed(
        position, "unknown-dtype", "dtype '" + name + "' does not say the order of its bytes");
  }

  private static RuntimeException refusal(NpyInput input, long position, String name, String kind) {
    char first = kind.isEmpty() ? ' ' : kind.charAt(0);
    return switch (first) {
      case 'O' ->
          input.malformed(
              position,
              "object-dtype",
              "dtype '" + name + "' holds Python objects, which Gantry does not read");
      case 'U', 'S', 'a' ->
          input.malformed(
              position, "text-dtype", "dtype '" + name + "' is text, which no tensor holds");
      case 'V' ->
          input.malformed(
              position,
              "structured-dtype",
              "dtype '" + name + "' is raw bytes, of which the file does not say what they mean");
      case 'M', 'm' ->
          input.malformed(
              position, "time-dtype", "dtype '" + name + "' is of times, which no tensor holds");
      default ->
          input.malformed(
              position, "unknown-dtype", "dtype '" + name + "' is none that Gantry reads");
    };
  }
}
