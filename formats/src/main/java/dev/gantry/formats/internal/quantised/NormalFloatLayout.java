// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import static dev.gantry.core.spi.Formula.Axis.COLUMN;
import static dev.gantry.core.spi.Formula.Axis.ROW;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.spi.Formula;
import dev.gantry.formats.internal.json.JsonTree;
import dev.gantry.formats.spi.QuantisedInput.Axis;
import dev.gantry.formats.spi.StoredTensor;
import java.util.List;
import java.util.Set;

/// The layout of bitsandbytes' NF4 and FP4. A value is the table entry that a 4-bit code names,
/// times the largest absolute value of the code's block. The high half of a byte is the first
/// code. A block may continue in the next row. The blocks' maxima may be quantised themselves.
/// Source: bitsandbytes `functional.py`.
final class NormalFloatLayout {
  private NormalFloatLayout() {}

  /// @param weight the tensor's name
  /// @param state the name of the tensor whose bytes are the JSON that describes it
  static StoredTensor of(Layout layout, String weight, String state) {
    StoredTensor codes = layout.codes();
    JsonTree notes = layout.json(layout.get(state));
    List<Long> shape = notes.counts("shape");
    long block = notes.count("blocksize").orElse(0L);
    layout.require(
        !shape.isEmpty() && shape.size() <= 2 && shape.stream().allMatch(one -> one >= 0),
        "wrong-shape",
        "'" + state + "' says the shape " + shape + ", which is not a matrix");
    layout.require(
        block >= 2 && block <= 1 << 20 && block % 2 == 0,
        "wrong-block",
        "'" + state + "' says blocksize " + block);
    TensorShape whole = TensorShape.of(shape.stream().mapToLong(Long::longValue).toArray());
    long elements = whole.elements().orElse(Long.MAX_VALUE);
    layout.require(
        elements <= Integer.MAX_VALUE, "too-large", "'" + state + "' says the shape " + shape);
    long bytes = Math.ceilDiv(elements, 2);
    // Codes that are stored in elements of several bytes may be padded to a whole element.
    long stored = codes.bytes();
    layout.require(
        stored >= bytes && stored - bytes < codes.dtype().alignmentBytes(),
        "wrong-shape",
        "'%s' has %s bytes, and shape %s needs %s".formatted(codes.name(), stored, shape, bytes));
    long columns = shape.getLast();
    boolean byRow = columns > 0 && columns % block == 0 && shape.size() == 2;
    long blocks = Math.ceilDiv(elements, block);
    Formula element = byRow ? COLUMN : ROW.times(layout.parameter(columns)).plus(COLUMN);
    Formula half = element.modulo(2).xor(1).times(4);
    Formula code;
    if (byRow) {
      int input =
          layout.add(
              codes,
              DType.U8,
              TensorShape.of(shape.getFirst(), columns / 2),
              Axis.of(ROW),
              Axis.of(COLUMN, 2));
      code = Formula.load(input, 1, Formula.of(0), ROW, COLUMN.dividedBy(2));
    } else {
      int input = layout.add(codes, DType.U8, TensorShape.of(stored), Axis.WHOLE);
      code = Formula.load(input, 1, Formula.of(0), element.dividedBy(2));
    }
    int size = Math.toIntExact(block);
    Formula number =
        byRow
            ? ROW.times(layout.parameter(columns / block)).plus(COLUMN.dividedBy(size))
            : element.dividedBy(size);
    Formula value =
        table(layout, weight + ".quant_map", 16, code.shiftedRight(half).and(15))
            .times(maximum(layout, weight, notes, number, blocks, byRow ? columns / block : 0));
    return layout.tensor(
        "bitsandbytes", value, shape.stream().mapToLong(Long::longValue).toArray());
  }

  /// Returns the largest absolute value of a block.
  ///
  /// @param number the block's number
  /// @param ofRow how many blocks a row has, or 0 if blocks run across rows
  private static Formula maximum(
      Layout layout, String weight, JsonTree notes, Formula number, long blocks, long ofRow) {
    StoredTensor maxima = layout.get(weight + ".absmax");
    layout.requireShape(maxima, "one for each block", blocks);
    boolean nested = maxima.dtype() == DType.U8;
    layout.requireDtype(maxima, Set.of(DType.F32, DType.U8));
    TensorShape view = ofRow == 0 ? maxima.shape() : TensorShape.of(blocks / ofRow, ofRow);
    int size = Math.toIntExact(notes.count("blocksize").orElseThrow());
    int input =
        ofRow == 0
            ? layout.add(maxima, Axis.WHOLE)
            : layout.add(maxima, maxima.dtype(), view, Axis.of(ROW), Axis.of(COLUMN, size));
    Formula[] indexes =
        ofRow == 0 ? new Formula[] {number} : new Formula[] {ROW, COLUMN.dividedBy(size)};
    if (!nested) {
      return Formula.real(input, DType.F32, indexes);
    }
    long group = notes.count("nested_blocksize").orElse(256L);
    layout.require(
        group > 0 && group <= 1 << 20, "wrong-block", "the notes say nested_blocksize " + group);
    StoredTensor outer = layout.get(weight + ".nested_absmax");
    layout.requireDtype(outer, Set.of(DType.F32));
    layout.requireShape(outer, "one for each group of blocks", Math.ceilDiv(blocks, group));
    Formula inner =
        table(
            layout,
            weight + ".nested_quant_map",
            256,
            Formula.load(input, 1, Formula.of(0), indexes));
    int factors = layout.add(outer, Axis.WHOLE);
    float offset = notes.get("nested_offset", Double.class).orElse(0.0).floatValue();
    return inner
        .times(Formula.real(factors, DType.F32, number.dividedBy(Math.toIntExact(group))))
        .plus(layout.parameter(Float.floatToRawIntBits(offset)).real(Formula.Source.F32));
  }

  private static Formula table(Layout layout, String name, int entries, Formula index) {
    StoredTensor table = layout.get(name);
    layout.requireDtype(table, Set.of(DType.F32));
    layout.requireShape(table, "an entry for each code", entries);
    return Formula.real(layout.add(table, Axis.WHOLE), DType.F32, index);
  }
}
