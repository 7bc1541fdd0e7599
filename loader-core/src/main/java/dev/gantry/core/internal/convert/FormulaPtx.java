// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.DType;
import dev.gantry.core.spi.Formula;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;

/// Writes the PTX of the kernel that computes a formula. A thread of the kernel computes eight
/// adjacent columns of a row; a step whose result is the same for all eight is computed once.
/// [Parameter] has the layout of the kernel's parameter. Only one thread may use an instance.
final class FormulaPtx {
  static final String ENTRY = "dequantise";
  static final int THREADS = 256;

  /// The columns that a thread computes.
  static final int COLUMNS = 8;

  /// The offsets of the fields in the kernel's parameter, in bytes.
  static final class Parameter {
    static final int TARGET = 0;
    static final int INPUTS = 8;
    static final int INPUT_BYTES = (1 + Dequantisation.MAX_AXES) * Long.BYTES;
    static final int MATRIX = INPUTS + Dequantisation.MAX_INPUTS * INPUT_BYTES;
    static final int ROW = MATRIX + 4;
    static final int COLUMN = ROW + 4;
    static final int ROWS = COLUMN + 4;
    static final int COLUMNS = ROWS + 4;
    static final int COLUMN_TILES = COLUMNS + 4;
    static final int ROW_TILES = COLUMN_TILES + 4;
    static final int TILE_SHIFT = ROW_TILES + 4;
    static final int WHOLE_STORES = TILE_SHIFT + 4;
    static final int NUMBERS = WHOLE_STORES + 4;
    static final int BYTES = NUMBERS + Dequantisation.MAX_PARAMETERS * 4 + 4;

    private Parameter() {}
  }

  private final StringBuilder code = new StringBuilder();
  private final StringBuilder tables = new StringBuilder();
  private final IdentityHashMap<Formula.Table, String> named = new IdentityHashMap<>();
  private final List<FormulaTape.Step> steps;

  /// The register with each step's result for the column that is being written.
  private final String[] results;

  private int ints;
  private int reals;
  private int longs;
  private int predicates;

  private FormulaPtx(FormulaTape tape) {
    this.steps = tape.steps();
    this.results = new String[steps.size()];
  }

  static String of(FormulaTape tape, DType to) {
    return new FormulaPtx(tape).kernel(to);
  }

  private String kernel(DType to) {
    findElements();
    // A step of long runs may use steps of short runs, so first all steps are written for the
    // first column.
    for (int i = 0; i < steps.size(); i++) {
      results[i] = make(steps.get(i), "%first");
    }
    List<String> bits = new ArrayList<>();
    for (int column = 0; column < COLUMNS; column++) {
      line("add.u32 %at, %base, {};", column);
      line("max.u32 %at, %at, %begin;");
      line("min.u32 %at, %at, %last;");
      for (int i = 0; i < steps.size(); i++) {
        if (steps.get(i).run() < COLUMNS) {
          results[i] = make(steps.get(i), "%at");
        }
      }
      bits.add(rounded(results[steps.size() - 1], to));
    }
    store(bits, to.bits() / Byte.SIZE);
    line("ret;");
    return """
    // Made by FormulaPtx.
    .version 6.5
    .target sm_75
    .address_size 64
    %s
    .visible .entry %s(.param .align 8 .b8 parameter[%d])
    .maxntid %d, 1, 1
    {
    .reg .u32 %%base, %%begin, %%last, %%first, %%at, %%matrix, %%row, %%x, %%y, %%tile, %%one, %%two;
    .reg .u64 %%target, %%element;
    .reg .pred %%outside;
    .reg .b32 %%r<%d>;
    .reg .f32 %%f<%d>;
    .reg .b64 %%d<%d>;
    .reg .pred %%p<%d>;
    .reg .b16 %%h<4>;
    %s}
    """
        .formatted(
            tables,
            ENTRY,
            Parameter.BYTES,
            THREADS,
            ints + 1,
            reals + 1,
            longs + 1,
            predicates + 1,
            code);
  }

  /// Writes a line.
  ///
  /// @param text the text, in which each `{}` is replaced by the next argument
  private void line(String text, Object... arguments) {
    int from = 0;
    for (Object argument : arguments) {
      int at = text.indexOf("{}", from);
      code.append(text, from, at).append(argument);
      from = at + 2;
    }
    code.append(text, from, text.length()).append('\n');
  }

  /// Writes the code by which a thread computes its row and columns.
  private void findElements() {
    parameter("u32", "%one", Parameter.COLUMN_TILES);
    line("mov.u32 %tile, %ctaid.x;");
    line("rem.u32 %x, %tile, %one;");
    line("div.u32 %tile, %tile, %one;");
    parameter("u32", "%one", Parameter.ROW_TILES);
    line("rem.u32 %y, %tile, %one;");
    line("div.u32 %matrix, %tile, %one;");
    parameter("u32", "%two", Parameter.TILE_SHIFT);
    line("mov.u32 %tile, %tid.x;");
    // The tile is 2^shift threads wide and THREADS / 2^shift threads high.
    line("shl.b32 %x, %x, %two;");
    line("mov.u32 %one, 1;");
    line("shl.b32 %one, %one, %two;");
    line("sub.u32 %one, %one, 1;");
    line("and.b32 %one, %one, %tile;");
    line("add.u32 %x, %x, %one;");
    line("mov.u32 %one, {};", THREADS);
    line("shr.u32 %one, %one, %two;");
    line("mul.lo.u32 %y, %y, %one;");
    line("shr.u32 %one, %tile, %two;");
    line("add.u32 %row, %y, %one;");
    parameter("u32", "%one", Parameter.ROWS);
    line("setp.ge.u32 %outside, %row, %one;");
    line("@%outside ret;");
    // The element of the box is (matrix * rows + row) * columns + column.
    line("cvt.u64.u32 %element, %row;");
    line("mad.wide.u32 %element, %matrix, %one, %element;");
    parameter("u32", "%two", Parameter.COLUMNS);
    line("cvt.u64.u32 %target, %two;");
    line("mul.lo.u64 %element, %element, %target;");
    parameter("u32", "%begin", Parameter.COLUMN);
    line("add.u32 %last, %begin, %two;");
    line("sub.u32 %last, %last, 1;");
    line("and.b32 %base, %begin, {};", -COLUMNS);
    line("mad.lo.u32 %base, %x, {}, %base;", COLUMNS);
    line("setp.gt.u32 %outside, %base, %last;");
    line("@%outside ret;");
    line("max.u32 %first, %base, %begin;");
    parameter("u32", "%one", Parameter.ROW);
    line("add.u32 %row, %row, %one;");
    parameter("u32", "%one", Parameter.MATRIX);
    line("add.u32 %matrix, %matrix, %one;");
  }

  private void parameter(String type, String register, int offset) {
    line("ld.param.{} {}, [parameter+{}];", type, register, offset);
  }

  private String integer() {
    return "%r" + ints++;
  }

  private String real() {
    return "%f" + reals++;
  }

  private String address() {
    return "%d" + longs++;
  }

  /// Writes the code of a step, and returns the register of its result.
  ///
  /// @param column the register of the column
  private String make(FormulaTape.Step step, String column) {
    return switch (step.formula()) {
      case Formula.Axis axis ->
          switch (axis) {
            case MATRIX -> "%matrix";
            case ROW -> "%row";
            case COLUMN -> {
              String copy = integer();
              line("mov.u32 {}, {};", copy, column);
              yield copy;
            }
          };
      case Formula.Constant(int value) -> Integer.toString(value);
      case Formula.Parameter(int number) -> {
        String to = integer();
        parameter("u32", to, Parameter.NUMBERS + 4 * number);
        yield to;
      }
      case Formula.Binary binary -> binary(binary, result(step, 0), result(step, 1));
      case Formula.ToReal real -> real(real.what(), inRegister(result(step, 0)));
      case Formula.Load load -> load(step, load);
      case Formula.Lookup lookup -> {
        String at = address();
        String base = address();
        line("mov.u64 {}, {};", base, name(lookup.table()));
        line("mad.wide.u32 {}, {}, 4, {};", at, inRegister(result(step, 0)), base);
        String to = lookup.table().isReal() ? real() : integer();
        line("ld.global.nc.{} {}, [{}];", lookup.table().isReal() ? "f32" : "u32", to, at);
        yield to;
      }
    };
  }

  private String result(FormulaTape.Step step, int number) {
    return results[step.operand(number)];
  }

  private String inRegister(String value) {
    if (value.startsWith("%")) {
      return value;
    }
    String to = integer();
    line("mov.u32 {}, {};", to, value);
    return to;
  }

  private String binary(Formula.Binary binary, String left, String right) {
    if (binary.isReal()) {
      String to = real();
      String name =
          switch (binary.operator()) {
            case PLUS -> "add";
            case MINUS -> "sub";
            case TIMES -> "mul";
            case DIVIDE -> "div";
            case REMAINDER, SHIFT_LEFT, SHIFT_RIGHT, AND, OR, XOR, SMALLER ->
                throw new IllegalStateException(binary.operator() + " of F32 numbers");
          };
      line("{}.rn.f32 {}, {}, {};", name, to, left, right);
      return to;
    }
    String to = integer();
    String name =
        switch (binary.operator()) {
          case PLUS -> "add.u32";
          case MINUS -> "sub.u32";
          case TIMES -> "mul.lo.u32";
          case DIVIDE -> "div.u32";
          case REMAINDER -> "rem.u32";
          case SHIFT_LEFT -> "shl.b32";
          case SHIFT_RIGHT -> "shr.u32";
          case AND -> "and.b32";
          case OR -> "or.b32";
          case XOR -> "xor.b32";
          case SMALLER -> "min.u32";
        };
    line("{} {}, {}, {};", name, to, inRegister(left), right);
    return to;
  }

  private String real(Formula.Source what, String from) {
    String to = real();
    switch (what) {
      case INTEGER -> line("cvt.rn.f32.s32 {}, {};", to, from);
      case F16 -> {
        line("cvt.u16.u32 %h0, {};", from);
        line("cvt.f32.f16 {}, %h0;", to);
      }
      case F32 -> line("mov.b32 {}, {};", to, from);
    }
    return to;
  }

  /// Writes code that loads byte by byte, since inputs need no alignment.
  private String load(FormulaTape.Step step, Formula.Load load) {
    int input = Parameter.INPUTS + load.input() * Parameter.INPUT_BYTES;
    String at = address();
    parameter("u64", at, input);
    for (int i = 0; i < step.operands(); i++) {
      String index = result(step, i);
      if (index.equals("0")) {
        continue;
      }
      String sum = address();
      String wide = address();
      line("cvt.u64.u32 {}, {};", wide, inRegister(index));
      if (i == 0) {
        line("add.u64 {}, {}, {};", sum, at, wide);
      } else {
        String stride = address();
        parameter("u64", stride, input + i * Long.BYTES);
        line("mad.lo.u64 {}, {}, {}, {};", sum, wide, stride, at);
      }
      at = sum;
    }
    String to = integer();
    line("ld.global.nc.u8 {}, [{}];", to, at);
    for (int i = 1; i < load.bytes(); i++) {
      String high = integer();
      String moved = integer();
      String both = integer();
      line("ld.global.nc.u8 {}, [{}+{}];", high, at, i);
      line("shl.b32 {}, {}, {};", moved, high, i * Byte.SIZE);
      line("or.b32 {}, {}, {};", both, to, moved);
      to = both;
    }
    return to;
  }

  private String name(Formula.Table table) {
    return named.computeIfAbsent(
        table,
        _ -> {
          String name = "table" + named.size();
          int[] bits = table.bits();
          tables.append(".global .align 4 .b32 %s[%d] = {".formatted(name, bits.length));
          for (int i = 0; i < bits.length; i++) {
            tables.append(i == 0 ? "" : ",").append(bits[i]);
          }
          tables.append("};\n");
          return name;
        });
  }

  /// Writes the code that rounds a result, and returns the register of its bits.
  private String rounded(String value, DType to) {
    String bits = integer();
    String number = "%p" + predicates++;
    line("setp.eq.f32 {}, {}, {};", number, value, value);
    switch (to) {
      case F32 -> {
        line("mov.b32 {}, {};", bits, value);
        line("selp.b32 {}, {}, {}, {};", bits, bits, Codes.NAN_F32, number);
      }
      case BF16 -> {
        String even = integer();
        line("mov.b32 {}, {};", bits, value);
        line("shr.u32 {}, {}, 16;", even, bits);
        line("and.b32 {}, {}, 1;", even, even);
        line("add.u32 {}, {}, {};", bits, bits, even);
        line("add.u32 {}, {}, {};", bits, bits, 0x7FFF);
        line("shr.u32 {}, {}, 16;", bits, bits);
        line("selp.b32 {}, {}, {}, {};", bits, bits, Codes.NAN_BF16, number);
      }
      default -> {
        line("cvt.rn.f16.f32 %h0, {};", value);
        line("cvt.u32.u16 {}, %h0;", bits);
        line("selp.b32 {}, {}, {}, {};", bits, bits, Codes.NAN_F16, number);
      }
    }
    return bits;
  }

  /// Writes the code that stores eight results: in words of 16 bytes if all are in the box and
  /// such words are aligned, otherwise one by one.
  private void store(List<String> bits, int bytes) {
    parameter("u64", "%target", Parameter.TARGET);
    line("mad.lo.u64 %target, %element, {}, %target;", bytes);
    // The box's first column is at the row's start.
    line("sub.u32 %one, %base, %begin;");
    line("cvt.s64.s32 %element, %one;");
    line("mad.lo.s64 %target, %element, {}, %target;", bytes);
    line("add.u32 %one, %base, {};", COLUMNS - 1);
    line("setp.gt.u32 %outside, %one, %last;");
    line("@%outside bra one_by_one;");
    line("setp.lt.u32 %outside, %base, %begin;");
    line("@%outside bra one_by_one;");
    parameter("u32", "%one", Parameter.WHOLE_STORES);
    line("setp.eq.u32 %outside, %one, 0;");
    line("@%outside bra one_by_one;");
    List<String> words = bytes == 4 ? bits : pairs(bits);
    for (int i = 0; i < words.size(); i += 4) {
      line(
          "st.global.v4.b32 [%target+{}], {{}, {}, {}, {}};",
          4 * i, words.get(i), words.get(i + 1), words.get(i + 2), words.get(i + 3));
    }
    line("ret;");
    line("one_by_one:");
    for (int i = 0; i < COLUMNS; i++) {
      line("add.u32 %at, %base, {};", i);
      line("setp.ge.u32 %outside, %at, %begin;");
      line("setp.le.and.u32 %outside, %at, %last, %outside;");
      line(
          "@%outside st.global.{} [%target+{}], {};",
          bytes == 4 ? "b32" : "b16", i * bytes, half(bits.get(i), bytes));
    }
  }

  private List<String> pairs(List<String> bits) {
    List<String> words = new ArrayList<>();
    for (int i = 0; i < bits.size(); i += 2) {
      String high = integer();
      line("shl.b32 {}, {}, 16;", high, bits.get(i + 1));
      line("or.b32 {}, {}, {};", high, high, bits.get(i));
      words.add(high);
    }
    return words;
  }

  private String half(String bits, int bytes) {
    if (bytes == 4) {
      return bits;
    }
    line("cvt.u16.u32 %h1, {};", bits);
    return "%h1";
  }
}
