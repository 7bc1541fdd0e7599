// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import dev.gantry.core.spi.Formula;
import dev.gantry.core.spi.Formula.Operator;
import dev.gantry.core.spi.Formula.Source;
import dev.gantry.core.spi.Formula.Table;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/// The formulas that compute the values of quantised elements from their blocks. The F32
/// operations come in the same order as in the Python package gguf (`quants.py` of version 0.19),
/// so that results are equal to the bit.
///
/// Each formula has one input, with the axes row, block in the row, and byte in the block.
final class GgufFormulas {
  private static final Map<GgufType, Formula> ALL = new EnumMap<>(GgufType.class);

  static {
    for (GgufType type : GgufType.values()) {
      new GgufFormulas(type).formula(type).ifPresent(formula -> ALL.put(type, formula));
    }
  }

  private final Formula block;

  /// The number of the element in its block.
  private final Formula e;

  private GgufFormulas(GgufType type) {
    block = Formula.Axis.COLUMN.dividedBy(type.blockElements());
    e = Formula.Axis.COLUMN.modulo(type.blockElements());
  }

  /// Returns the formula of a quantised type.
  static Formula of(GgufType type) {
    return Objects.requireNonNull(ALL.get(type), type::name);
  }

  private Optional<Formula> formula(GgufType type) {
    return Optional.ofNullable(
        switch (type) {
          case F32, F16, BF16, F64, I8, I16, I32, I64 -> null;
          case Q1_0 -> half(0).times(bit(2).times(2).minus(1).real());
          case Q4_0 -> half(0).times(nibble(2, 32).minus(8).real());
          case Q4_1 -> half(0).times(nibble(4, 32).real()).plus(half(2));
          case Q5_0 -> half(0).times(nibble(6, 32).or(bit(2).shiftedLeft(4)).minus(16).real());
          case Q5_1 -> half(0).times(nibble(8, 32).or(bit(4).shiftedLeft(4)).real()).plus(half(2));
          case Q8_0 -> half(0).times(int8(2, e));
          case Q8_K -> load(4, Formula.of(0)).real(Source.F32).times(int8(4, e));
          case Q2_K -> {
            Formula scale = uint8(0, by(16));
            yield half(80)
                .times(scale.and(15).real())
                .times(pair(16).real())
                .minus(half(82).times(scale.shiftedRight(4).real()));
          }
          case Q3_K -> {
            Formula low = bits(uint8(96, by(16).modulo(8)), by(128).times(4), 4);
            Formula high = bits(uint8(104, by(16).modulo(4)), by(64).times(2), 2);
            Formula clear = bits(uint8(0, e.modulo(32)), by(32), 1).xor(1);
            yield half(108)
                .times(low.or(high.shiftedLeft(4)).minus(32).real())
                .times(pair(32).minus(clear.shiftedLeft(2)).real());
          }
          case Q4_K -> scaled6(nibble(16, 64));
          case Q5_K ->
              scaled6(nibble(48, 64).or(bits(uint8(16, e.modulo(32)), by(32), 1).shiftedLeft(4)));
          case Q6_K -> {
            Formula high =
                bits(uint8(128, by(128).times(32).plus(e.modulo(32))), shifts(32, 4, 2), 2);
            yield half(208)
                .times(int8(192, by(16)))
                .times(nibble(0, 128).or(high.shiftedLeft(4)).minus(32).real());
          }
          case TQ1_0 -> {
            Formula code =
                uint8(0, GgufTables.TERNARY_BYTE.at(e)).times(GgufTables.TERNARY_POWER.at(e));
            yield half(52).times(code.and(255).times(3).shiftedRight(8).minus(1).real());
          }
          case TQ2_0 -> half(64).times(pair(0).minus(1).real());
          case MXFP4 ->
              GgufTables.HALF_E8M0
                  .at(uint8(0, Formula.of(0)))
                  .times(GgufTables.E2M1.at(nibble(1, 32)));
          case NVFP4 ->
              GgufTables.HALF_UE4M3.at(uint8(0, by(16))).times(GgufTables.E2M1.at(nibble(4, 16)));
          case IQ4_NL -> half(0).times(GgufTables.NONLINEAR.at(nibble(2, 32)));
          case IQ4_XS -> {
            Formula high = load(2, Formula.of(2)).shiftedRight(by(32).times(2)).and(3);
            yield half(0)
                .times(nibbles(4, by(32)).or(high.shiftedLeft(4)).minus(32).real())
                .times(GgufTables.NONLINEAR.at(nibble(8, 32)));
          }
          case IQ2_XXS -> {
            Formula signs = load(4, by(32).times(8).plus(6));
            Formula index = uint8(2, by(32).times(8).plus(by(8).modulo(4)));
            yield halves(signs.shiftedRight(28), 0.25f)
                .times(grid2(GgufTables.GRID_IQ2_XXS, index))
                .times(evenSign(signs));
          }
          case IQ2_XS -> {
            Formula entry = load(2, by(8).times(2).plus(2));
            yield halves(nibbles(66, by(16)), 0.25f)
                .times(grid2(GgufTables.GRID_IQ2_XS, entry.and(511)))
                .times(sign(GgufTables.EVEN_SIGNS.at(entry.shiftedRight(9))));
          }
          case IQ2_S -> {
            Formula high = bits(uint8(66, by(32)), shifts(8, 4, 2), 2);
            yield halves(nibbles(74, by(16)), 0.25f)
                .times(grid2(GgufTables.GRID_IQ2_S, uint8(2, by(8)).or(high.shiftedLeft(8))))
                .times(sign(uint8(34, by(8))));
          }
          case IQ3_XXS -> {
            Formula signs = load(4, by(32).times(4).plus(66));
            yield halves(signs.shiftedRight(28), 0.5f)
                .times(grid4(GgufTables.GRID_IQ3_XXS, GgufTables.CODES_IQ3_XXS, uint8(2, by(4))))
                .times(evenSign(signs));
          }
          case IQ3_S -> {
            Formula index =
                uint8(2, by(4)).or(bits(uint8(66, by(32)), by(4).modulo(8), 1).shiftedLeft(8));
            yield half(0)
                .times(nibbles(106, by(32)).times(2).plus(1).real())
                .times(grid4(GgufTables.GRID_IQ3_S, GgufTables.CODES_IQ3_S, index))
                .times(sign(uint8(74, by(8))));
          }
          case IQ1_S -> {
            Formula high = load(2, by(32).times(2).plus(34));
            Formula index = bits(high, by(8).modulo(4).times(3), 3).shiftedLeft(8);
            yield half(0)
                .times(odd(high.shiftedRight(12).and(7)))
                .times(
                    grid1(uint8(2, by(8)).or(index))
                        .plus(GgufTables.DELTA.at(high.shiftedRight(15))));
          }
          case IQ1_M -> {
            Formula high = bits(uint8(32, by(16)), by(8).modulo(2).times(4), 4);
            Formula scale = load(2, by(64).times(2).plus(48));
            yield scaleOfParts()
                .times(odd(bits(scale, by(16).modulo(4).times(3), 3)))
                .times(
                    grid1(uint8(0, by(8)).or(high.and(7).shiftedLeft(8)))
                        .plus(GgufTables.DELTA.at(high.shiftedRight(3))));
          }
        });
  }

  /// Returns the element's number in its block, divided by `divisor`.
  private Formula by(int divisor) {
    return e.dividedBy(divisor);
  }

  /// Returns by how many bits an element's code is shifted in its bytes. The pieces of a block
  /// share bytes, and each piece has its own shift.
  ///
  /// @param run how many elements a piece has
  /// @param pieces how many pieces share bytes
  private Formula shifts(int run, int pieces, int bits) {
    return by(run).modulo(pieces).times(bits);
  }

  private Formula load(int bytes, Formula offset) {
    return Formula.load(0, bytes, offset, Formula.Axis.ROW, block);
  }

  private Formula uint8(int start, Formula index) {
    return load(1, index.plus(start));
  }

  private Formula int8(int start, Formula index) {
    return uint8(start, index).signed(Byte.SIZE).real();
  }

  /// Loads an F16 number at an offset in the block.
  private Formula half(int offset) {
    return load(2, Formula.of(offset)).real(Source.F16);
  }

  private static Formula bits(Formula from, Formula shift, int count) {
    return from.shiftedRight(shift).and((1 << count) - 1);
  }

  /// Loads the element's bit from a run of bytes with one bit for each element.
  private Formula bit(int start) {
    return bits(uint8(start, by(8)), e.modulo(8), 1);
  }

  /// Loads the 4-bit code with the given number; the lower half of a byte comes first.
  private Formula nibbles(int start, Formula number) {
    return bits(uint8(start, number.dividedBy(2)), number.modulo(2).times(4), 4);
  }

  /// Loads the element's 4-bit code. In a run of elements, the first half has the lower bits of
  /// the run's bytes, and the second half has the upper bits.
  private Formula nibble(int start, int run) {
    Formula at = by(run).times(run / 2).plus(e.modulo(run / 2));
    return bits(uint8(start, at), shifts(run / 2, 2, 4), 4);
  }

  /// Loads the element's 2-bit code; 32 bytes hold the codes of 128 elements.
  private Formula pair(int start) {
    return bits(uint8(start, by(128).times(32).plus(e.modulo(32))), shifts(32, 4, 2), 2);
  }

  /// Computes `d * scale * code - dmin * min`. The eight scales and eight minima have six bits
  /// each and are packed in twelve bytes. The first four of each lie whole in a byte, whose upper
  /// two bits belong to the last four.
  private Formula scaled6(Formula code) {
    Formula upper = by(128);
    Formula in = by(32).modulo(4);
    Formula mask = Formula.of(63).minus(upper.times(48));
    Formula high = upper.times(48);
    Formula scale =
        and(uint8(4, upper.times(8).plus(in)), mask).or(and(uint8(4, in).shiftedRight(2), high));
    Formula min =
        and(uint8(8, upper.times(4).plus(in)).shiftedRight(upper.times(4)), mask)
            .or(and(uint8(8, in).shiftedRight(2), high));
    return half(0).times(scale.real()).times(code.real()).minus(half(2).times(min.real()));
  }

  private static Formula and(Formula left, Formula right) {
    return new Formula.Binary(Operator.AND, left, right);
  }

  /// Computes `d * (0.5 + scale) * factor`.
  private Formula halves(Formula scale, float factor) {
    return half(0).times(Formula.of(0.5f).plus(scale.real())).times(Formula.of(factor));
  }

  private static Formula odd(Formula scale) {
    return scale.times(2).plus(1).real();
  }

  /// Loads the F16 scale of an IQ1_M block, whose four parts are the upper bits of four words.
  private Formula scaleOfParts() {
    Formula scale = load(2, Formula.of(48)).shiftedRight(12);
    for (int part = 1; part < 4; part++) {
      Formula bits = load(2, Formula.of(48 + 2 * part)).shiftedRight(12);
      scale = scale.or(bits.shiftedLeft(4 * part));
    }
    return scale.real(Source.F16);
  }

  private Formula grid1(Formula index) {
    return grid(GgufTables.GRID_IQ1, GgufTables.CODES_IQ1, index, 8);
  }

  private Formula grid2(Table grid, Formula index) {
    return grid(grid, GgufTables.CODES_IQ2, index, 8);
  }

  private Formula grid4(Table grid, Table codes, Formula index) {
    return grid(grid, codes, index, 4);
  }

  /// @param elements how many elements an entry has; together their codes have 16 bits
  private Formula grid(Table grid, Table codes, Formula index, int elements) {
    int bits = Short.SIZE / elements;
    return codes.at(bits(grid.at(index), e.modulo(elements).times(bits), elements == 8 ? 2 : 3));
  }

  /// Returns the sign of the element from a byte of sign bits.
  private Formula sign(Formula signs) {
    return GgufTables.SIGN.at(bits(signs, e.modulo(8), 1));
  }

  private Formula evenSign(Formula signs) {
    return sign(GgufTables.EVEN_SIGNS.at(bits(signs, by(8).modulo(4).times(7), 7)));
  }
}
