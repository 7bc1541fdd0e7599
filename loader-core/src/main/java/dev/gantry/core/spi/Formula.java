// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

import dev.gantry.core.DType;
import java.util.List;

/// The value of a quantised tensor's element, as an expression over the element's indexes and the
/// bytes of the tensor's inputs, such as its codes and scales. The CPU evaluates the expression,
/// and a GPU kernel that is generated from it computes the same bits. An expression is an integer
/// of 32 bits, unsigned where that matters, or an F32 number. Each operation on F32 numbers is
/// rounded separately. Immutable.
public sealed interface Formula {
  /// The indexes of an element in the whole tensor, which is a sequence of matrices.
  enum Axis implements Formula {
    MATRIX,
    ROW,
    COLUMN
  }

  record Constant(int value) implements Formula {}

  /// A number that differs from tensor to tensor, so that tensors of other shapes share a kernel.
  ///
  /// @param number the parameter's number, counted from 0, at most 3
  record Parameter(int number) implements Formula {}

  /// An operation on two integers, or on two F32 numbers.
  record Binary(Operator operator, Formula left, Formula right) implements Formula {}

  /// @param what how the integer is interpreted
  record ToReal(Source what, Formula integer) implements Formula {}

  /// The bytes of an input as an unsigned integer, little endian.
  ///
  /// @param input the number of the input
  /// @param bytes 1, 2 or 4
  /// @param indexes an index for each of the input's axes, from the first axis on; an index that
  ///     is not given is 0
  /// @param offset bytes from the start of the element with these indexes
  record Load(int input, int bytes, List<Formula> indexes, Formula offset) implements Formula {
    public Load {
      indexes = List.copyOf(indexes);
    }
  }

  /// @param index at least 0 and less than the table's length
  record Lookup(Table table, Formula index) implements Formula {}

  /// Division and remainder are unsigned, and shifts are by less than 32.
  enum Operator {
    PLUS,
    MINUS,
    TIMES,
    DIVIDE,
    REMAINDER,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    AND,
    OR,
    XOR,
    SMALLER
  }

  enum Source {
    /// A signed integer.
    INTEGER,
    /// The 16 bits of an F16 number.
    F16,
    /// The 32 bits of an F32 number.
    F32
  }

  /// A table of constants. Two tables are equal only if they are the same object.
  final class Table {
    private final int[] bits;
    private final boolean real;

    private Table(int[] bits, boolean real) {
      this.bits = bits;
      this.real = real;
    }

    public static Table of(int... integers) {
      return new Table(integers.clone(), false);
    }

    public static Table of(float... numbers) {
      int[] bits = new int[numbers.length];
      for (int i = 0; i < bits.length; i++) {
        bits[i] = Float.floatToRawIntBits(numbers[i]);
      }
      return new Table(bits, true);
    }

    /// Whether the entries are F32 numbers, rather than integers.
    public boolean isReal() {
      return real;
    }

    /// Returns the entries, or their bits.
    public int[] bits() {
      return bits.clone();
    }

    /// @param index less than the number of entries
    public Formula at(Formula index) {
      return new Lookup(this, index);
    }
  }

  static Formula of(int value) {
    return new Constant(value);
  }

  static Formula of(float value) {
    return of(Float.floatToRawIntBits(value)).real(Source.F32);
  }

  static Formula load(int input, int bytes, Formula offset, Formula... indexes) {
    return new Load(input, bytes, List.of(indexes), offset);
  }

  /// Returns an element of an input as an F32 number.
  ///
  /// @param dtype F32, F16, BF16, I8, U8, or an F8 dtype; F8_E8M0 is a power of two
  /// @param indexes an index for each of the input's axes, from the first axis on; an index that
  ///     is not given is 0
  static Formula real(int input, DType dtype, Formula... indexes) {
    Formula bits = load(input, dtype.bits() / Byte.SIZE, of(0), indexes);
    return switch (dtype) {
      case F32 -> bits.real(Source.F32);
      case F16 -> bits.real(Source.F16);
      case BF16 -> bits.shiftedLeft(Short.SIZE).real(Source.F32);
      case U8 -> bits.real();
      case I8 -> bits.signed(Byte.SIZE).real();
      default -> FloatCodes.table(dtype).at(bits);
    };
  }

  /// Whether this is an F32 number, rather than an integer.
  default boolean isReal() {
    return switch (this) {
      case Axis _, Constant _, Parameter _, Load _ -> false;
      case Binary binary -> binary.left().isReal();
      case ToReal _ -> true;
      case Lookup lookup -> lookup.table().isReal();
    };
  }

  default Formula plus(Formula other) {
    return new Binary(Operator.PLUS, this, other);
  }

  default Formula plus(int other) {
    return other == 0 ? this : plus(of(other));
  }

  default Formula minus(Formula other) {
    return new Binary(Operator.MINUS, this, other);
  }

  default Formula minus(int other) {
    return minus(of(other));
  }

  default Formula times(Formula other) {
    return new Binary(Operator.TIMES, this, other);
  }

  /// Divides F32 numbers.
  default Formula over(Formula other) {
    return new Binary(Operator.DIVIDE, this, other);
  }

  default Formula times(int other) {
    return other == 1 ? this : times(of(other));
  }

  default Formula dividedBy(int divisor) {
    return divisor == 1 ? this : new Binary(Operator.DIVIDE, this, of(divisor));
  }

  default Formula modulo(int divisor) {
    return new Binary(Operator.REMAINDER, this, of(divisor));
  }

  default Formula shiftedLeft(int by) {
    return new Binary(Operator.SHIFT_LEFT, this, of(by));
  }

  default Formula shiftedRight(Formula by) {
    return new Binary(Operator.SHIFT_RIGHT, this, by);
  }

  default Formula shiftedRight(int by) {
    return shiftedRight(of(by));
  }

  default Formula and(int mask) {
    return new Binary(Operator.AND, this, of(mask));
  }

  default Formula or(Formula other) {
    return new Binary(Operator.OR, this, other);
  }

  default Formula xor(int other) {
    return new Binary(Operator.XOR, this, of(other));
  }

  /// Returns the smaller of two unsigned integers.
  default Formula atMost(Formula other) {
    return new Binary(Operator.SMALLER, this, other);
  }

  /// Returns the lowest bits as a signed integer.
  default Formula signed(int bits) {
    return xor(1 << (bits - 1)).minus(1 << (bits - 1));
  }

  /// Returns a signed integer as an F32 number.
  default Formula real() {
    return real(Source.INTEGER);
  }

  default Formula real(Source what) {
    return new ToReal(what, this);
  }
}
