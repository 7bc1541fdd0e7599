// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import static dev.gantry.core.spi.Formula.Axis.COLUMN;
import static dev.gantry.core.spi.Formula.Axis.ROW;

import dev.gantry.core.DType;
import dev.gantry.core.spi.Formula;
import dev.gantry.formats.internal.json.JsonTree;
import dev.gantry.formats.spi.QuantisedInput.Axis;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.ByteBuffer;
import java.util.Optional;
import java.util.Set;

/// The layouts of integers of a few bits that are packed in 32-bit words, with a scale and a zero
/// point for each group of inputs: AWQ, GPTQ and compressed-tensors. A value is (code - zero
/// point) * scale. Sources: AutoAWQ `awq/utils/packing_utils.py`, AutoGPTQ `qlinear_cuda.py`,
/// GPTQModel, compressed-tensors `pack_quantized`.
final class IntegerLayouts {
  private static final int WORD_BITS = Integer.SIZE;
  private static final Set<DType> WORDS = Set.of(DType.I32);
  private static final int AWQ_BITS = 4;

  /// The position of each of eight outputs in a word of AWQ.
  private static final Formula.Table AWQ_ORDER = Formula.Table.of(0, 4, 1, 5, 2, 6, 3, 7);

  private IntegerLayouts() {}

  /// Makes an AWQ tensor. The rows of `qweight` are inputs; each word holds eight outputs.
  static StoredTensor awq(Layout layout, String module, JsonTree config) {
    StoredTensor codes = layout.codes();
    layout.requireDtype(codes, WORDS);
    layout.require(
        layout.find(module + ".g_idx").isEmpty(),
        "contradicting-method",
        "the configuration says awq, and '" + module + ".g_idx' is of GPTQ");
    long bits = config.count("bits").or(() -> config.count("w_bit")).orElse(4L);
    layout.require(
        bits == AWQ_BITS, "unknown-bits", "AWQ has 4 bits (the configuration says " + bits + ")");
    String version = config.text("version").or(() -> config.text("format")).orElse("gemm");
    layout.require(
        version.equalsIgnoreCase("gemm"),
        "unknown-layout",
        "AWQ's version '" + version + "' is not known");
    requireRank2(layout, codes);
    long in = codes.shape().dimension(0);
    long words = codes.shape().dimension(1);
    StoredTensor scales = layout.scales(module + ".scales");
    requireRank2(layout, scales);
    long out = scales.shape().dimension(1);
    long group =
        group(layout, in, config.count("group_size").or(() -> config.count("q_group_size")));
    String why = in + " inputs, in groups of " + group + ", and " + out + " outputs";
    layout.require(in % group == 0, "wrong-group-size", "groups do not divide the inputs: " + why);
    layout.requireShape(codes, why, in, Math.ceilDiv(out, 8));
    layout.requireShape(scales, why, in / group, out);
    int code = layout.add(codes, Axis.of(COLUMN), Axis.packed(ROW, AWQ_BITS, WORD_BITS));
    Formula place = ROW.dividedBy(8).times(8).plus(AWQ_ORDER.at(ROW.modulo(8)));
    Formula value = packed(AWQ_BITS, place, code, COLUMN);
    Groups of = Groups.of(layout, Optional.empty(), in, group, in / group);
    Optional<StoredTensor> zeros = layout.find(module + ".qzeros");
    if (zeros.isPresent() || config.get("zero_point", Boolean.class).orElse(true)) {
      StoredTensor zero = layout.get(module + ".qzeros");
      layout.requireDtype(zero, WORDS);
      layout.requireShape(zero, why, in / group, words);
      int input = layout.add(zero, of.axis(), Axis.packed(ROW, AWQ_BITS, WORD_BITS));
      value = value.minus(packed(AWQ_BITS, place, input, of.index()));
    } else {
      value = value.minus(1 << (AWQ_BITS - 1));
    }
    int scale = layout.add(scales, of.axis(), Axis.of(ROW));
    return layout.tensor(
        "awq", value.real().times(Formula.real(scale, scales.dtype(), of.index(), ROW)), out, in);
  }

  /// Makes a GPTQ tensor. The words of `qweight` lie along the inputs, its columns are outputs,
  /// and `g_idx` has the group of each input.
  static StoredTensor gptq(Layout layout, String module, JsonTree config) {
    StoredTensor codes = layout.codes();
    layout.requireDtype(codes, WORDS);
    int bits = bits(layout, config.count("bits").orElse(4L), Set.of(2, 3, 4, 8));
    String format = config.text("checkpoint_format").or(() -> config.text("format")).orElse("gptq");
    layout.require(
        format.equals("gptq") || format.equals("gptq_v2"),
        "unknown-layout",
        "GPTQ's checkpoint_format '" + format + "' is not known");
    requireRank2(layout, codes);
    long words = codes.shape().dimension(0);
    long out = codes.shape().dimension(1);
    long in = words * WORD_BITS / bits;
    StoredTensor scales = layout.scales(module + ".scales");
    StoredTensor zeros = layout.get(module + ".qzeros");
    layout.requireDtype(zeros, WORDS);
    long group = group(layout, in, config.count("group_size"));
    long groups = Math.ceilDiv(in, group);
    String why =
        "%s bits, %s inputs in groups of %s, and %s outputs".formatted(bits, in, group, out);
    layout.require(
        words * WORD_BITS % bits == 0, "wrong-shape", "words do not hold whole codes: " + why);
    layout.requireShape(scales, why, groups, out);
    layout.requireShape(zeros, why, groups, Math.ceilDiv(out * bits, WORD_BITS));
    Optional<StoredTensor> indexes = layout.find(module + ".g_idx");
    layout.require(
        indexes.isPresent() || !config.says("desc_act"),
        "missing-tensor",
        "'" + module + ".g_idx' is missing, and the configuration says desc_act");
    int code = layout.add(codes, Axis.packed(COLUMN, bits, WORD_BITS), Axis.of(ROW));
    Groups of = Groups.of(layout, indexes, in, group, groups);
    int zero = layout.add(zeros, of.axis(), Axis.packed(ROW, bits, WORD_BITS));
    int scale = layout.add(scales, of.axis(), Axis.of(ROW));
    Formula point = packed(bits, ROW, zero, of.index());
    // The first version of the format stores each zero point minus 1.
    Formula value =
        Layout.packed(bits, COLUMN, at -> wordColumn(code, at))
            .minus(format.equals("gptq") ? point.plus(1) : point);
    return layout.tensor(
        "gptq", value.real().times(Formula.real(scale, scales.dtype(), of.index(), ROW)), out, in);
  }

  /// Makes a tensor of compressed-tensors. The words of `weight_packed` lie along the inputs, and
  /// its rows are outputs; zero points are packed along the outputs.
  static StoredTensor compressed(Layout layout, String weight, JsonTree weights) {
    StoredTensor codes = layout.codes();
    layout.requireDtype(codes, WORDS);
    int bits = bits(layout, weights.count("num_bits").orElse(4L), Set.of(4, 8));
    requireRank2(layout, codes);
    long out = codes.shape().dimension(0);
    StoredTensor sizes = layout.get(weight + "_shape");
    layout.requireDtype(sizes, Set.of(DType.I64));
    layout.requireShape(sizes, "a matrix", 2);
    ByteBuffer shape = layout.read(sizes);
    long rows = shape.getLong();
    long in = shape.getLong();
    layout.require(
        rows == out && in >= 0 && in <= Integer.MAX_VALUE,
        "wrong-shape",
        "'%s' says %s x %s, and '%s' has %s rows"
            .formatted(sizes.name(), rows, in, codes.name(), out));
    String strategy = weights.text("strategy").orElse("group");
    long group =
        group(
            layout, in, strategy.equals("group") ? weights.count("group_size") : Optional.of(-1L));
    long groups = Math.ceilDiv(in, group);
    String why =
        "%s bits, %s inputs in groups of %s, and %s outputs".formatted(bits, in, group, out);
    layout.require(in % group == 0, "wrong-group-size", "groups do not divide the inputs: " + why);
    layout.requireShape(codes, why, out, Math.ceilDiv(in * bits, WORD_BITS));
    StoredTensor scales = layout.scales(weight + "_scale");
    boolean single = strategy.equals("tensor");
    layout.requireShape(scales, why, single ? new long[] {1} : new long[] {out, groups});
    int code = layout.add(codes, Axis.of(ROW), Axis.packed(COLUMN, bits, WORD_BITS));
    Groups of = Groups.of(layout, layout.find(weight + "_g_idx"), in, group, groups);
    Formula value = packed(bits, COLUMN, code, ROW);
    Optional<StoredTensor> zeros = layout.find(weight + "_zero_point");
    if (weights.get("symmetric", Boolean.class).orElse(true)) {
      value = value.minus(1 << (bits - 1));
    } else {
      StoredTensor zero = layout.get(weight + "_zero_point");
      layout.requireDtype(zeros.orElse(zero), WORDS);
      layout.requireShape(zero, why, Math.ceilDiv(out * bits, WORD_BITS), groups);
      int input = layout.add(zero, Axis.packed(ROW, bits, WORD_BITS), of.axis());
      value =
          value.minus(
              Layout.packed(
                  bits,
                  ROW,
                  at -> Formula.load(input, 1, at.modulo(4), at.dividedBy(4), of.index())));
    }
    int scale =
        single ? layout.add(scales, Axis.WHOLE) : layout.add(scales, Axis.of(ROW), of.axis());
    Formula factor =
        single
            ? Formula.real(scale, scales.dtype())
            : Formula.real(scale, scales.dtype(), ROW, of.index());
    return layout.tensor("pack-quantized", value.real().times(factor), out, in);
  }

  /// Says to which group an input belongs.
  ///
  /// @param axis how the groups of scales and zero points are indexed
  private record Groups(Formula index, Axis axis) {
    static Groups of(
        Layout layout, Optional<StoredTensor> indexes, long in, long group, long groups) {
      Groups plain =
          groups == 1
              ? new Groups(Formula.of(0), Axis.WHOLE)
              : new Groups(COLUMN.dividedBy(Math.toIntExact(group)), Axis.of(COLUMN, group));
      if (indexes.isEmpty()) {
        return plain;
      }
      StoredTensor given = indexes.orElseThrow();
      layout.requireDtype(given, WORDS);
      layout.requireShape(given, "an index for each input", in);
      ByteBuffer read = layout.read(given);
      boolean ascending = true;
      boolean unset = false;
      for (int i = 0; i < in; i++) {
        int one = read.getInt();
        ascending &= one == i / group;
        unset |= one == -1 && given.name().endsWith("weight_g_idx");
        if (!unset && (one < 0 || one >= groups)) {
          throw layout.malformed(
              given,
              "index-out-of-range",
              "'%s' has %s at %s, and there are %s groups".formatted(given.name(), one, i, groups));
        }
      }
      if (ascending || unset) {
        return plain;
      }
      int input = layout.add(given, Axis.of(COLUMN));
      // The file may change after the check, so the formula itself keeps each index within the
      // scales.
      Formula index =
          Formula.load(input, Integer.BYTES, Formula.of(0), COLUMN)
              .atMost(layout.parameter(groups - 1));
      return new Groups(index, Axis.WHOLE);
    }
  }

  /// Loads a code from a row of words.
  private static Formula packed(int bits, Formula place, int input, Formula line) {
    return Layout.packed(bits, place, at -> Formula.load(input, 1, at, line));
  }

  /// Loads a byte of the words in an output's column.
  private static Formula wordColumn(int input, Formula at) {
    return Formula.load(input, 1, at.modulo(4), at.dividedBy(4), ROW);
  }

  private static int bits(Layout layout, long bits, Set<Integer> known) {
    layout.require(
        bits > 0 && bits <= Byte.SIZE && known.contains((int) bits),
        "unknown-bits",
        "codes of " + bits + " bits are not known");
    return (int) bits;
  }

  /// Returns the size of a group. If the configuration says -1 or nothing, a group is all inputs.
  private static long group(Layout layout, long in, Optional<Long> configured) {
    long size = configured.orElse(-1L);
    layout.require(size == -1 || size > 0, "wrong-group-size", "group_size is " + size);
    return size == -1 ? Math.max(1, in) : Math.min(size, Integer.MAX_VALUE);
  }

  static void requireRank2(Layout layout, StoredTensor tensor) {
    if (tensor.shape().rank() != 2) {
      throw layout.malformed(
          tensor,
          "wrong-shape",
          "'" + tensor.name() + "' must be a matrix (was " + tensor.shape() + ")");
    }
  }
}
