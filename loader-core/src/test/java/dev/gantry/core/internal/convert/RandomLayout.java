// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import static dev.gantry.core.spi.Formula.Axis.COLUMN;
import static dev.gantry.core.spi.Formula.Axis.MATRIX;
import static dev.gantry.core.spi.Formula.Axis.ROW;

import dev.gantry.core.DType;
import dev.gantry.core.spi.Formula;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/// A layout of quantised weights, as files have it, with random bytes, and a box of its elements.
///
/// @param inputs the whole inputs
/// @param parts the parts of the inputs that the box needs
record RandomLayout(
    String name,
    Formula formula,
    Dequantisation.Box box,
    List<byte[]> inputs,
    List<Dequantisation.Input> described,
    List<byte[]> parts,
    List<Integer> parameters) {
  private static final Formula.Table NIBBLES =
      Formula.Table.of(
          0f, 0.5f, 1f, 1.5f, 2f, 3f, 4f, 6f, -0f, -0.5f, -1f, -1.5f, -2f, -3f, -4f, -6f);
  private static final Formula.Table ORDER = Formula.Table.of(0, 16, 4, 20, 8, 24, 12, 28);

  @Override
  public String toString() {
    return name + " " + box;
  }

  Dequantisation dequantisation(DType to) {
    return new Dequantisation(formula, to, box, described, parameters);
  }

  static RandomLayout of(Random random) {
    int rows = 1 + random.nextInt(random.nextBoolean() ? 4 : 90);
    int columns = 1 + random.nextInt(random.nextBoolean() ? 20 : 1700);
    int matrices = 1 + random.nextInt(3);
    return switch (random.nextInt(6)) {
      case 0 -> ofBlockScales(random, matrices, rows, columns);
      case 1 -> transposedNibbles(random, 8 * (1 + rows / 8), columns);
      case 2 -> superblocks(random, rows, 256 * (1 + columns / 256));
      case 3 -> threeBits(random, rows, columns);
      case 4 -> gathered(random, rows, columns);
      default -> flat(random, rows, columns);
    };
  }

  /// Makes codes of eight bits, with a scale for each block of 128 by 128.
  static RandomLayout ofBlockScales(Random random, int matrices, int rows, int columns) {
    int scaleRows = Math.ceilDiv(rows, 128);
    int scaleColumns = Math.ceilDiv(columns, 128);
    byte[] codes = bytes(random, matrices * rows * columns);
    byte[] scales = new byte[2 * matrices * scaleRows * scaleColumns];
    ByteBuffer all = ByteBuffer.wrap(scales).order(ByteOrder.LITTLE_ENDIAN);
    while (all.hasRemaining()) {
      all.putShort(
          (short) (random.nextInt(20) == 0 ? random.nextInt() : 0x3C00 + random.nextInt(999)));
    }
    Formula value =
        Formula.real(0, DType.F8_E4M3, MATRIX, ROW, COLUMN)
            .times(Formula.real(1, DType.F16, MATRIX, ROW.dividedBy(128), COLUMN.dividedBy(128)));
    return whole(
        "block scales",
        value,
        size(matrices, rows, columns),
        List.of(codes, scales),
        List.of(
            List.of((long) rows * columns, (long) columns, 1L),
            List.of(2L * scaleRows * scaleColumns, 2L * scaleColumns, 2L)),
        List.of());
  }

  /// Makes codes of four bits, with eight outputs in a word and one row of words for each input.
  /// The box has some of the columns.
  private static RandomLayout transposedNibbles(Random random, int rows, int columns) {
    int groups = Math.ceilDiv(columns, 32);
    int words = rows / 8;
    byte[] codes = bytes(random, columns * words * 4);
    byte[] zeros = bytes(random, groups * words * 4);
    byte[] scales = scales(random, groups * rows);
    Formula shift = ORDER.at(ROW.modulo(8));
    Formula code =
        Formula.load(0, 4, Formula.of(0), COLUMN, ROW.dividedBy(8)).shiftedRight(shift).and(15);
    Formula zero =
        Formula.load(1, 4, Formula.of(0), COLUMN.dividedBy(32), ROW.dividedBy(8))
            .shiftedRight(shift)
            .and(15);
    Formula value =
        code.minus(zero).real().times(Formula.real(2, DType.F32, COLUMN.dividedBy(32), ROW));
    int first = random.nextInt(columns);
    int count = 1 + random.nextInt(columns - first);
    long group = first / 32;
    long groupEnd = Math.ceilDiv(first + count, 32);
    List<Dequantisation.Input> described =
        List.of(
            new Dequantisation.Input(
                4L * words * count, List.of(4L * words, 4L), 4L * words * first),
            new Dequantisation.Input(
                4L * words * (groupEnd - group), List.of(4L * words, 4L), 4L * words * group),
            new Dequantisation.Input(
                4L * rows * (groupEnd - group), List.of(4L * rows, 4L), 4L * rows * group));
    return part(
        "transposed nibbles",
        value,
        new Dequantisation.Box(new Dequantisation.Indexes(0, 0, first), size(1, rows, count)),
        List.of(codes, zeros, scales),
        described,
        List.of());
  }

  /// Makes blocks of 256 elements, whose scales are multiplied with a scale of the block.
  private static RandomLayout superblocks(Random random, int rows, int columns) {
    int block = 2 + 8 + 128;
    byte[] codes = bytes(random, rows * columns / 256 * block);
    Formula at = COLUMN.dividedBy(256);
    Formula inBlock = COLUMN.modulo(256);
    Formula scale = Formula.load(0, 2, Formula.of(0), ROW, at).and(0x3FFF).real(Formula.Source.F16);
    Formula small =
        Formula.load(0, 1, inBlock.dividedBy(32).plus(2), ROW, at)
            .signed(6)
            .plus(32)
            .and(63)
            .real();
    Formula byteOfCode = inBlock.dividedBy(64).times(32).plus(inBlock.modulo(32)).plus(10);
    Formula code =
        Formula.load(0, 1, byteOfCode, ROW, at)
            .shiftedRight(inBlock.dividedBy(32).modulo(2).times(4))
            .and(15);
    Formula value = scale.times(small).times(code.minus(8).real()).minus(scale);
    int first = random.nextInt(rows);
    int count = 1 + random.nextInt(rows - first);
    long pitch = (long) columns / 256 * block;
    return part(
        "superblocks",
        value,
        new Dequantisation.Box(new Dequantisation.Indexes(0, first, 0), size(1, count, columns)),
        List.of(codes),
        List.of(
            new Dequantisation.Input(pitch * count, List.of(pitch, (long) block), pitch * first)),
        List.of());
  }

  /// Makes a stream of three-bit codes for each row, of which two bytes are loaded at a time, up
  /// to the last word.
  private static RandomLayout threeBits(Random random, int rows, int columns) {
    int words = Math.ceilDiv(3 * columns, 32) + 1;
    byte[] codes = bytes(random, rows * words * 4);
    Formula bit = COLUMN.times(3);
    Formula code =
        Formula.load(0, 2, bit.dividedBy(8), ROW).shiftedRight(bit.modulo(8)).and(7).xor(5);
    Formula value =
        Formula.Table.of(1.5f, -2f, 1e-41f, 4f, 5f, 65519f, 65520f, Float.NaN)
            .at(code)
            .times(Formula.of(1.25f));
    return whole(
        "three bits",
        value,
        size(1, rows, columns),
        List.of(codes),
        List.of(List.of(4L * words)),
        List.of());
  }

  /// Makes codes whose scale an index chooses for each column.
  private static RandomLayout gathered(Random random, int rows, int columns) {
    byte[] codes = bytes(random, rows * Math.ceilDiv(columns, 2));
    byte[] index = bytes(random, columns);
    byte[] scales = scales(random, 7 * rows);
    Formula code =
        Formula.load(0, 1, COLUMN.dividedBy(2), ROW)
            .shiftedRight(COLUMN.modulo(2).shiftedLeft(2))
            .and(15);
    Formula group = Formula.load(1, 1, Formula.of(0), COLUMN).atMost(Formula.of(6));
    Formula value = NIBBLES.at(code).times(Formula.real(2, DType.F32, group, ROW));
    return whole(
        "gathered",
        value,
        size(1, rows, columns),
        List.of(codes, index, scales),
        List.of(List.of((long) Math.ceilDiv(columns, 2)), List.of(1L), List.of(4L * rows, 4L)),
        List.of());
  }

  /// Makes codes whose blocks continue from one row to the next.
  private static RandomLayout flat(Random random, int rows, int columns) {
    byte[] codes = bytes(random, Math.ceilDiv(rows * columns, 2));
    byte[] scales = scales(random, Math.ceilDiv(rows * columns, 64));
    Formula element = ROW.times(new Formula.Parameter(0)).plus(COLUMN);
    Formula odd = element.modulo(2).xor(1).times(4);
    Formula code = Formula.load(0, 1, element.dividedBy(2)).shiftedRight(odd).and(15);
    Formula value = NIBBLES.at(code).times(Formula.real(1, DType.F32, element.dividedBy(64)));
    return whole(
        "flat",
        value,
        size(1, rows, columns),
        List.of(codes, scales),
        List.of(List.of(1L), List.of(4L)),
        List.of(columns));
  }

  private static Dequantisation.Indexes size(int matrices, int rows, int columns) {
    return new Dequantisation.Indexes(matrices, rows, columns);
  }

  private static RandomLayout whole(
      String name,
      Formula formula,
      Dequantisation.Indexes size,
      List<byte[]> inputs,
      List<List<Long>> strides,
      List<Integer> parameters) {
    List<Dequantisation.Input> described = new ArrayList<>();
    for (int i = 0; i < inputs.size(); i++) {
      described.add(new Dequantisation.Input(inputs.get(i).length, strides.get(i), 0));
    }
    Dequantisation.Box box = new Dequantisation.Box(new Dequantisation.Indexes(0, 0, 0), size);
    return part(name, formula, box, inputs, described, parameters);
  }

  private static RandomLayout part(
      String name,
      Formula formula,
      Dequantisation.Box box,
      List<byte[]> inputs,
      List<Dequantisation.Input> described,
      List<Integer> parameters) {
    List<byte[]> parts = new ArrayList<>();
    for (int i = 0; i < inputs.size(); i++) {
      Dequantisation.Input input = described.get(i);
      byte[] part = new byte[(int) input.bytes()];
      System.arraycopy(inputs.get(i), (int) input.start(), part, 0, part.length);
      parts.add(part);
    }
    return new RandomLayout(name, formula, box, inputs, described, parts, parameters);
  }

  private static byte[] bytes(Random random, int count) {
    byte[] bytes = new byte[count];
    random.nextBytes(bytes);
    return bytes;
  }

  /// Makes scales that are mostly near 1; a few have random bits.
  private static byte[] scales(Random random, int count) {
    ByteBuffer scales = ByteBuffer.allocate(4 * count).order(ByteOrder.LITTLE_ENDIAN);
    while (scales.hasRemaining()) {
      scales.putFloat(
          random.nextInt(20) == 0
              ? Float.intBitsToFloat(random.nextInt())
              : Math.scalb(random.nextFloat() + 1, random.nextInt(20) - 10));
    }
    return scales.array();
  }

  /// Computes the box from the whole inputs, one element after the other.
  byte[] naive(Dequantisation what) {
    ByteBuffer made = ByteBuffer.allocate((int) what.targetBytes()).order(ByteOrder.LITTLE_ENDIAN);
    for (int matrix = 0; matrix < box.size().matrix(); matrix++) {
      for (int row = 0; row < box.size().row(); row++) {
        for (int column = 0; column < box.size().column(); column++) {
          int[] indexes = {
            (int) box.first().matrix() + matrix,
            (int) box.first().row() + row,
            (int) box.first().column() + column
          };
          int bits = Codes.bits(what.to(), Float.intBitsToFloat(value(formula, indexes)));
          if (what.to() == DType.F32) {
            made.putInt(bits);
          } else {
            made.putShort((short) bits);
          }
        }
      }
    }
    return made.array();
  }

  /// Returns the formula's value: an integer, or the bits of an F32 number.
  private int value(Formula one, int[] indexes) {
    return switch (one) {
      case Formula.Axis.MATRIX -> indexes[0];
      case Formula.Axis.ROW -> indexes[1];
      case Formula.Axis.COLUMN -> indexes[2];
      case Formula.Constant(int constant) -> constant;
      case Formula.Parameter(int number) -> parameters.get(number);
      case Formula.Lookup(Formula.Table table, Formula index) ->
          table.bits()[value(index, indexes)];
      case Formula.ToReal(Formula.Source what, Formula from) -> {
        int bits = value(from, indexes);
        yield switch (what) {
          case INTEGER -> Float.floatToRawIntBits(bits);
          case F16 -> Float.floatToRawIntBits(Float.float16ToFloat((short) bits));
          case F32 -> bits;
        };
      }
      case Formula.Load load -> {
        long at = Integer.toUnsignedLong(value(load.offset(), indexes));
        for (int i = 0; i < load.indexes().size(); i++) {
          at +=
              described.get(load.input()).stride(i)
                  * Integer.toUnsignedLong(value(load.indexes().get(i), indexes));
        }
        int bits = 0;
        for (int i = 0; i < load.bytes(); i++) {
          bits |= (inputs.get(load.input())[(int) at + i] & 0xFF) << (8 * i);
        }
        yield bits;
      }
      case Formula.Binary(Formula.Operator operator, Formula left, Formula right) -> {
        int a = value(left, indexes);
        int b = value(right, indexes);
        yield one.isReal()
            ? Float.floatToRawIntBits(
                real(operator, Float.intBitsToFloat(a), Float.intBitsToFloat(b)))
            : integer(operator, a, b);
      }
    };
  }

  private static float real(Formula.Operator operator, float a, float b) {
    return switch (operator) {
      case PLUS -> a + b;
      case MINUS -> a - b;
      case TIMES -> a * b;
      case DIVIDE -> a / b;
      default -> throw new IllegalStateException();
    };
  }

  private static int integer(Formula.Operator operator, int a, int b) {
    return switch (operator) {
      case PLUS -> a + b;
      case MINUS -> a - b;
      case TIMES -> a * b;
      case DIVIDE -> Integer.divideUnsigned(a, b);
      case REMAINDER -> Integer.remainderUnsigned(a, b);
      case SHIFT_LEFT -> a << b;
      case SHIFT_RIGHT -> a >>> b;
      case AND -> a & b;
      case OR -> a | b;
      case XOR -> a ^ b;
      case SMALLER -> Integer.compareUnsigned(a, b) < 0 ? a : b;
    };
  }
}
