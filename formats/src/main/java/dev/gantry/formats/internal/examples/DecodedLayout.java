// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.FieldView;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// The layout of the memory into which a batch's records are decoded. The fields follow each
/// other; each has its samples end to end, with space for the largest values. Immutable.
public final class DecodedLayout {
  /// Fields begin at multiples of this many bytes, which suits a GPU's reads.
  private static final int ALIGNMENT_BYTES = 256;

  private final List<FeatureLayout> features;
  private final List<Optional<Field>> lengths;
  private final long[] offsets;

  /// The offset of each feature's lengths, for features that have a field of lengths.
  private final long[] lengthOffsets;

  private final long bytes;

  /// @param lengths the field for each feature's lengths, if it has one
  /// @param samples the most samples of a batch
  /// @throws MisuseException if a batch would need more memory than can be addressed
  DecodedLayout(List<FeatureLayout> features, List<Optional<Field>> lengths, int samples) {
    this.features = features;
    this.lengths = lengths;
    offsets = new long[features.size()];
    lengthOffsets = new long[features.size()];
    long at = 0;
    try {
      for (int i = 0; i < offsets.length; i++) {
        offsets[i] = at;
        at = after(at, features.get(i).field(), samples);
        lengthOffsets[i] = at;
        if (lengths.get(i).isPresent()) {
          at = after(at, lengths.get(i).get(), samples);
        }
      }
    } catch (ArithmeticException _) {
      throw new MisuseException("batches of " + samples + " samples are too large");
    }
    bytes = at;
  }

  /// The offset at which the next field may begin.
  private static long after(long offset, Field field, int samples) {
    long bytes = Math.multiplyExact(field.sampleBytes(), (long) samples);
    return Math.addExact(offset, Math.addExact(bytes, ALIGNMENT_BYTES - 1) & -ALIGNMENT_BYTES);
  }

  /// The size of the largest batch, in bytes.
  public long bytes() {
    return bytes;
  }

  /// Returns each feature's row length in units, for [#views]. The length is 0 for a feature
  /// whose rows become as long as the batch's longest; [ExampleDecoder#extend] lengthens it.
  public long[] rows() {
    return features.stream()
        .mapToLong(feature -> feature.toLongest() ? 0 : feature.most())
        .toArray();
  }

  /// The offset of a sample's row, in bytes from the batch's start.
  ///
  /// @param rows each feature's row length in units
  long offset(int feature, int sample, long[] rows) {
    return offsets[feature] + sample * rowBytes(feature, rows);
  }

  boolean hasLengths(int feature) {
    return lengths.get(feature).isPresent();
  }

  /// The offset of a sample's length, an I64, for a feature that has a field of lengths.
  long lengthOffset(int feature, int sample) {
    return lengthOffsets[feature] + (long) sample * Long.BYTES;
  }

  long rowBytes(int feature, long[] rows) {
    return rows[feature] * features.get(feature).unitBytes();
  }

  /// The fields of a batch.
  public List<FieldView> views(int samples, long[] rows) {
    List<FieldView> views = new ArrayList<>();
    for (int i = 0; i < features.size(); i++) {
      Field field = features.get(i).field();
      TensorShape shape = field.shape();
      if (features.get(i).toLongest()) {
        long[] dimensions = shape.toArray();
        dimensions[0] = rows[i];
        shape = TensorShape.of(dimensions);
      }
      views.add(FieldView.dense(field, shape, samples, offsets[i]));
      if (lengths.get(i).isPresent()) {
        views.add(FieldView.dense(lengths.get(i).get(), samples, lengthOffsets[i]));
      }
    }
    return views;
  }
}
