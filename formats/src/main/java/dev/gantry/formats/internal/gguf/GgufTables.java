// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import dev.gantry.core.spi.Formula.Table;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;
import java.util.function.IntToDoubleFunction;
import java.util.function.IntUnaryOperator;

/// Constants of GGUF's quantised types.
final class GgufTables {
  /// The values of the 4-bit codes of IQ4_NL and IQ4_XS.
  static final Table NONLINEAR =
      Table.of(-127f, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);

  /// Twice the values of E2M1 codes. The code of negative zero has the value 0 here.
  static final Table E2M1 = Table.of(0f, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);

  /// Half the values of E8M0 codes.
  static final Table HALF_E8M0 = numbers(256, code -> Math.scalb(1.0, code - 128));

  /// Half the values of E4M3 codes without their sign.
  static final Table HALF_UE4M3 = numbers(256, GgufTables::halfUe4m3);

  static final Table SIGN = Table.of(1f, -1f);

  /// The sign bits of eight elements, by the sign bits of the first seven: the number of negative
  /// elements is even.
  static final Table EVEN_SIGNS = integers(128, bits -> bits | (Integer.bitCount(bits) & 1) << 7);

  static final Table DELTA = Table.of(0.125f, -0.125f);

  /// For each element of a TQ1_0 block the number of its byte, of which each holds up to five elements in the base 3.
  static final Table TERNARY_BYTE =
      integers(
          256,
          element ->
              element < 160 ? element % 32 : element < 240 ? 32 + element % 16 : 48 + element % 4);

  /// For each element of a TQ1_0 block what its byte is multiplied by.
  static final Table TERNARY_POWER =
      integers(
          256,
          element ->
              (int)
                  Math.pow(
                      3,
                      element < 160
                          ? element / 32
                          : element < 240 ? (element - 160) / 16 : (element - 240) / 4));

  /// Values of the codes in grids.
  static final Table CODES_IQ1 = Table.of(-1f, 0, 1, 0);

  static final Table CODES_IQ2 = Table.of(8f, 25, 43, 0);
  static final Table CODES_IQ3_XXS = Table.of(4f, 12, 20, 28, 36, 44, 52, 62);
  static final Table CODES_IQ3_S = Table.of(1f, 3, 5, 7, 9, 11, 13, 15);

  // The grids of the IQ types: in an entry of 16 bits, the codes of eight elements of two bits
  // each, or of four elements
  // of four bits. The numbers are those of ggml (ggml-common.h, MIT licence, Copyright (c)
  // 2023-2026 The ggml authors),
  // packed as in the package gguf.
  static final Table GRID_IQ2_XXS;
  static final Table GRID_IQ2_XS;
  static final Table GRID_IQ2_S;
  static final Table GRID_IQ3_XXS;
  static final Table GRID_IQ3_S;
  static final Table GRID_IQ1;

  static {
    try (InputStream resource =
        Objects.requireNonNull(GgufTables.class.getResourceAsStream("grids.bin"))) {
      ByteBuffer grids = ByteBuffer.wrap(resource.readAllBytes()).order(ByteOrder.LITTLE_ENDIAN);
      GRID_IQ2_XXS = grid(grids, 256);
      GRID_IQ2_XS = grid(grids, 512);
      GRID_IQ2_S = grid(grids, 1024);
      GRID_IQ3_XXS = grid(grids, 256);
      GRID_IQ3_S = grid(grids, 512);
      GRID_IQ1 = grid(grids, 2048);
    } catch (IOException e) {
      throw new UncheckedIOException("the jar cannot be read", e);
    }
  }

  private GgufTables() {}

  private static Table grid(ByteBuffer grids, int entries) {
    return integers(entries, _ -> Short.toUnsignedInt(grids.getShort()));
  }

  private static Table integers(int count, IntUnaryOperator value) {
    int[] integers = new int[count];
    for (int i = 0; i < count; i++) {
      integers[i] = value.applyAsInt(i);
    }
    return Table.of(integers);
  }

  private static Table numbers(int count, IntToDoubleFunction value) {
    float[] numbers = new float[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = (float) value.applyAsDouble(i);
    }
    return Table.of(numbers);
  }

  private static double halfUe4m3(int code) {
    int exponent = code >> 3 & 15;
    double fraction = (code & 7) / 8.0;
    if (code == 0x7F) {
      return 0;
    }
    return exponent == 0 ? Math.scalb(fraction, -7) : Math.scalb(1 + fraction, exponent - 8);
  }
}
