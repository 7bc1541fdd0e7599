// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import static dev.gantry.core.spi.Formula.Axis.COLUMN;
import static dev.gantry.core.spi.Formula.Axis.MATRIX;
import static dev.gantry.core.spi.Formula.Axis.ROW;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.spi.Formula;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.QuantisedInput;
import dev.gantry.formats.spi.QuantisedInput.Axis;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The layouts of floating-point codes and of 8-bit integers with scales: FP8 and INT8 with any
/// scales, the MX formats, and NVFP4. Sources: OCP Microscaling Formats 1.0; DeepSeek-V3
/// `inference/kernel.py`; compressed-tensors; ModelOpt `nvfp4_tensor.py`; gpt-oss `weights.py`.
final class FloatLayouts {
  /// The dtypes of 8-bit codes.
  static final Set<DType> CODES =
      Set.of(DType.F8_E4M3, DType.F8_E5M2, DType.F8_E4M3FNUZ, DType.F8_E5M2FNUZ, DType.I8);

  /// The dtypes of scales that are stored as the exponents of powers of two.
  private static final Set<DType> POWERS = Set.of(DType.U8, DType.F8_E8M0);

  private static final Set<DType> PAIRS = Set.of(DType.U8, DType.I8);
  private static final Set<DType> SCALES =
      Set.of(DType.F32, DType.BF16, DType.F16, DType.U8, DType.F8_E8M0);

  /// The values of E2M1's codes.
  private static final Formula.Table E2M1 =
      Formula.Table.of(
          0f, 0.5f, 1f, 1.5f, 2f, 3f, 4f, 6f, -0f, -0.5f, -1f, -1.5f, -2f, -3f, -4f, -6f);

  private static final int MX_GROUP = 32;
  private static final int NVFP4_GROUP = 16;

  private FloatLayouts() {}

  /// Makes a tensor of 8-bit codes, each times the scale of its tensor, row, column or block.
  /// Scales that are bytes are exponents of powers of two.
  ///
  /// @param zero the zero points, in the shape of the scales, or null
  /// @param block the size of a block, or null if the configuration does not state it
  static StoredTensor scaled(
      Layout layout,
      StoredTensor scales,
      @Nullable StoredTensor zero,
      ScaleShapes.@Nullable Block block) {
    StoredTensor codes = layout.codes();
    layout.requireDtype(codes, CODES);
    layout.requireDtype(scales, SCALES);
    TensorShape shape = codes.shape();
    switch (ScaleShapes.fit(shape, scales.shape(), block)) {
      case ScaleShapes.Fit.None(String reason) ->
          throw layout.malformed(
              scales, "wrong-shape", "'" + scales.name() + "' does not fit: " + reason);
      case ScaleShapes.Fit.Found found -> {
        int rowAxis = found.rowAxis();
        int code =
            layout.add(
                codes,
                codes.dtype(),
                view(shape, rowAxis),
                Axis.of(MATRIX),
                Axis.of(ROW),
                Axis.of(COLUMN));
        Formula value;
        if (zero == null) {
          value = Formula.real(code, codes.dtype(), MATRIX, ROW, COLUMN);
        } else {
          layout.requireDtype(zero, Set.of(DType.I8));
          layout.requireShape(zero, "as its scales", scales.shape().toArray());
          int point = layout.add(zero, zero.dtype(), found.view(), axes(found));
          value =
              signed(code, List.of(MATRIX, ROW, COLUMN))
                  .minus(signed(point, indexes(found)))
                  .real();
        }
        int scale = layout.add(scales, scales.dtype(), found.view(), axes(found));
        Formula factor =
            Formula.real(
                scale,
                scales.dtype() == DType.U8 ? DType.F8_E8M0 : scales.dtype(),
                indexes(found).toArray(Formula[]::new));
        return layout.tensor(codes.dtype() + " with scales", value.times(factor), rowAxis, shape);
      }
    }
  }

  /// Makes a tensor of 8-bit codes without scales.
  static StoredTensor unscaled(StoredTensor codes) {
    TensorShape shape = codes.shape();
    int rank = shape.rank();
    StoredTensor seen =
        rank <= 3
            ? codes
            : new StoredTensor(codes.name(), codes.dtype(), view(shape, rank - 2), codes.extent());
    List<Formula.Axis> axes = List.of(MATRIX, ROW, COLUMN).subList(3 - Math.min(rank, 3), 3);
    Encoding.Quantised encoding =
        new Encoding.Quantised(
            codes.dtype().name(),
            Formula.real(0, codes.dtype(), axes.toArray(Formula[]::new)),
            List.of(new QuantisedInput(seen, axes.stream().map(Axis::of).toList())),
            List.of(),
            Math.max(-1, rank - 2));
    return new StoredTensor(codes.name(), DType.F32, shape, codes.extent(), encoding);
  }

  private static TensorShape view(TensorShape shape, int rowAxis) {
    return TensorShape.of(
        Encoding.Quantised.product(shape, 0, rowAxis),
        rowAxis < 0 ? 1 : shape.dimension(rowAxis),
        Encoding.Quantised.product(shape, rowAxis + 1, shape.rank()));
  }

  private static Formula signed(int input, List<Formula> indexes) {
    return Formula.load(input, 1, Formula.of(0), indexes.toArray(Formula[]::new)).signed(Byte.SIZE);
  }

  private static Axis[] axes(ScaleShapes.Fit.Found found) {
    return found.axes().toArray(Axis[]::new);
  }

  private static List<Formula> indexes(ScaleShapes.Fit.Found found) {
    List<Formula> indexes = new ArrayList<>();
    for (QuantisedInput.Axis axis : found.axes()) {
      indexes.add(
          axis.of() == null ? Formula.of(0) : axis.of().dividedBy(Math.toIntExact(axis.by())));
    }
    return indexes;
  }

  /// Makes a tensor of pairs of E2M1 codes, the low half of a byte first, with a power of two for
  /// each 32 columns.
  static StoredTensor mxfp4(Layout layout, StoredTensor scales) {
    StoredTensor codes = layout.codes();
    long rows = pairs(layout, scales, POWERS, MX_GROUP);
    long columns = codes.shape().dimension(1) * 2;
    Formula value = pair(layout, codes);
    int scale = layout.add(scales, Axis.of(ROW), Axis.of(COLUMN, MX_GROUP));
    Formula power = Formula.real(scale, DType.F8_E8M0, ROW, COLUMN.dividedBy(MX_GROUP));
    return layout.tensor("mxfp4", value.times(power), rows, columns);
  }

  /// Makes a tensor of pairs of E2M1 codes, with an FP8 scale for each 16 columns and one F32
  /// number for the whole tensor.
  ///
  /// @param divides whether the F32 number divides the scales, as in compressed-tensors; if
  ///     false, it multiplies them, as in ModelOpt
  static StoredTensor nvfp4(
      Layout layout, StoredTensor scales, StoredTensor global, boolean divides) {
    StoredTensor codes = layout.codes();
    long rows = pairs(layout, scales, Set.of(DType.F8_E4M3), NVFP4_GROUP);
    long columns = codes.shape().dimension(1) * 2;
    layout.requireDtype(global, Set.of(DType.F32));
    if (global.shape().elements().orElse(0) != 1) {
      throw layout.malformed(
          global,
          "wrong-shape",
          "'" + global.name() + "' must be one number (was " + global.shape() + ")");
    }
    Formula value = pair(layout, codes);
    int scale = layout.add(scales, Axis.of(ROW), Axis.of(COLUMN, NVFP4_GROUP));
    int all = layout.add(global, DType.F32, TensorShape.of(1), Axis.WHOLE);
    Formula local = Formula.real(scale, DType.F8_E4M3, ROW, COLUMN.dividedBy(NVFP4_GROUP));
    Formula one = Formula.real(all, DType.F32);
    return layout.tensor(
        "nvfp4", value.times(divides ? local.over(one) : local.times(one)), rows, columns);
  }

  /// Checks a matrix of pairs and its scales, and returns the number of the matrix's rows.
  private static long pairs(Layout layout, StoredTensor scales, Set<DType> dtypes, int group) {
    StoredTensor codes = layout.codes();
    layout.requireDtype(codes, PAIRS);
    layout.requireDtype(scales, dtypes);
    IntegerLayouts.requireRank2(layout, codes);
    long rows = codes.shape().dimension(0);
    long columns = Math.multiplyExact(codes.shape().dimension(1), 2);
    layout.requireShape(
        scales, columns + " columns in groups of " + group, rows, Math.ceilDiv(columns, group));
    return rows;
  }

  private static Formula pair(Layout layout, StoredTensor codes) {
    int code = layout.add(codes, Axis.of(ROW), Axis.of(COLUMN, 2));
    return E2M1.at(Layout.packed(4, COLUMN, at -> Formula.load(code, 1, Formula.of(0), ROW, at)));
  }

  /// Makes the tensor of gpt-oss's expert matrices: `_blocks` has 16 bytes for each 32 inputs of
  /// an output. The tensor's rows are the inputs, as in transformers.
  static StoredTensor experts(Layout layout, StoredTensor scales) {
    StoredTensor codes = layout.codes();
    layout.requireDtype(codes, Set.of(DType.U8));
    layout.requireDtype(scales, Set.of(DType.U8));
    TensorShape shape = codes.shape();
    layout.require(
        shape.rank() == 4 && shape.dimension(3) == MX_GROUP / 2,
        "wrong-shape",
        "'"
            + codes.name()
            + "' must have shape [experts, outputs, groups, 16] (was "
            + shape
            + ")");
    long experts = shape.dimension(0);
    long outputs = shape.dimension(1);
    long groups = shape.dimension(2);
    layout.requireShape(scales, "a scale for each group", experts, outputs, groups);
    int code =
        layout.add(
            codes,
            DType.U8,
            TensorShape.of(experts, outputs, Math.multiplyExact(groups, MX_GROUP / 2)),
            Axis.of(MATRIX),
            Axis.of(COLUMN),
            Axis.of(ROW, 2));
    int scale = layout.add(scales, Axis.of(MATRIX), Axis.of(COLUMN), Axis.of(ROW, MX_GROUP));
    Formula value =
        E2M1.at(
            Layout.packed(4, ROW, at -> Formula.load(code, 1, Formula.of(0), MATRIX, COLUMN, at)));
    Formula power = Formula.real(scale, DType.F8_E8M0, MATRIX, COLUMN, ROW.dividedBy(MX_GROUP));
    return layout.tensor(
        "mxfp4", value.times(power), experts, Math.multiplyExact(groups, MX_GROUP), outputs);
  }

  /// Makes a tensor of bitsandbytes' 8-bit integers. The code 127 stands for the largest absolute
  /// value of the row.
  static StoredTensor rowMaxima(Layout layout, StoredTensor maxima) {
    StoredTensor codes = layout.codes();
    layout.requireDtype(codes, Set.of(DType.I8));
    layout.requireDtype(maxima, Set.of(DType.F32));
    IntegerLayouts.requireRank2(layout, codes);
    long rows = codes.shape().dimension(0);
    layout.requireShape(maxima, "one for each row", rows);
    int code = layout.add(codes, Axis.of(ROW), Axis.of(COLUMN));
    int maximum = layout.add(maxima, Axis.of(ROW));
    Formula value =
        Formula.real(code, DType.I8, ROW, COLUMN)
            .times(Formula.real(maximum, DType.F32, ROW))
            .times(Formula.of(1f / 127));
    return layout.tensor("int8", value, rows, codes.shape().dimension(1));
  }

  /// Finds the scales of a tensor of 8-bit codes by their names.
  static Optional<StoredTensor> scalesOf(Layout layout, String tensor) {
    return layout
        .find(tensor + "_scale_inv")
        .or(() -> layout.find(tensor + "_scale"))
        .or(() ->
            tensor.endsWith(".weight")
                ? layout
                    .find(tensor.substring(0, tensor.length() - "weight".length()) + "scale")
                    .filter(scale -> scale.dtype() == DType.F8_E8M0)
                : Optional.empty());
  }
}
