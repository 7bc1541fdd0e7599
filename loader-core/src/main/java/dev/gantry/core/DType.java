// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// The element types that a tensor file can name, spelled as safetensors spells them.
///
/// Source: the reference implementation's `Dtype`, safetensors 0.8.0.
public enum DType {
  BOOL(8),
  F4(4),
  F6_E2M3(6),
  F6_E3M2(6),
  U8(8),
  I8(8),
  F8_E5M2(8),
  F8_E4M3(8),
  F8_E8M0(8),
  F8_E4M3FNUZ(8),
  F8_E5M2FNUZ(8),
  I16(16),
  U16(16),
  F16(16),
  BF16(16),
  I32(32),
  U32(32),
  F32(32),
  C64(64),
  F64(64),
  I64(64),
  U64(64);

  private static final Map<String, DType> BY_NAME =
      Stream.of(values()).collect(Collectors.toUnmodifiableMap(DType::name, Function.identity()));

  private final int bits;

  DType(int bits) {
    this.bits = bits;
  }

  /// Bits of one element: 4 and 6 for the sub-byte types, else a multiple of 8.
  public int bits() {
    return bits;
  }

  /// Bytes to which the address of an element must be aligned: 1 for types of a byte or less.
  public int alignmentBytes() {
    return Math.max(1, bits / Byte.SIZE);
  }

  /// Returns the dtype whose name is exactly `name` (upper case), or empty if there is none.
  public static Optional<DType> named(String name) {
    return Optional.ofNullable(BY_NAME.get(MisuseException.requireGiven("name", name)));
  }
}
