// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import dev.gantry.core.DType;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The types of tensors. A row of a quantised tensor is blocks of consecutive elements, each of the same size.
///
/// Source of numbers and sizes: `ggml_type` and the `block_` structures of ggml.
enum GgufType {
  F32(0, DType.F32),
  F16(1, DType.F16),
  Q4_0(2, 32, 18),
  Q4_1(3, 32, 20),
  Q5_0(6, 32, 22),
  Q5_1(7, 32, 24),
  Q8_0(8, 32, 34),
  Q2_K(10, 256, 84),
  Q3_K(11, 256, 110),
  Q4_K(12, 256, 144),
  Q5_K(13, 256, 176),
  Q6_K(14, 256, 210),
  Q8_K(15, 256, 292),
  IQ2_XXS(16, 256, 66),
  IQ2_XS(17, 256, 74),
  IQ3_XXS(18, 256, 98),
  IQ1_S(19, 256, 50),
  IQ4_NL(20, 32, 18),
  IQ3_S(21, 256, 110),
  IQ2_S(22, 256, 82),
  IQ4_XS(23, 256, 136),
  I8(24, DType.I8),
  I16(25, DType.I16),
  I32(26, DType.I32),
  I64(27, DType.I64),
  F64(28, DType.F64),
  IQ1_M(29, 256, 56),
  BF16(30, DType.BF16),
  TQ1_0(34, 256, 54),
  TQ2_0(35, 256, 66),
  MXFP4(39, 32, 17),
  NVFP4(40, 64, 36),
  Q1_0(41, 128, 18);

  private static final Map<Integer, GgufType> BY_NUMBER =
      Stream.of(values())
          .collect(Collectors.toUnmodifiableMap(type -> type.number, Function.identity()));

  private final int number;
  private final int blockElements;
  private final int blockBytes;
  private final @Nullable DType dtype;

  GgufType(int number, DType dtype) {
    this.number = number;
    this.blockElements = 1;
    this.blockBytes = dtype.bits() / Byte.SIZE;
    this.dtype = dtype;
  }

  GgufType(int number, int blockElements, int blockBytes) {
    this.number = number;
    this.blockElements = blockElements;
    this.blockBytes = blockBytes;
    this.dtype = null;
  }

  static Optional<GgufType> numbered(int number) {
    return Optional.ofNullable(BY_NUMBER.get(number));
  }

  int blockElements() {
    return blockElements;
  }

  int blockBytes() {
    return blockBytes;
  }

  /// The dtype of plain elements; empty for quantised ones.
  Optional<DType> dtype() {
    return Optional.ofNullable(dtype);
  }
}
