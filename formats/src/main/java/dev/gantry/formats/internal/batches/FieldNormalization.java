// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.batch.Normalization;
import dev.gantry.formats.Field;
import java.util.Collections;
import java.util.List;
import java.util.stream.LongStream;

/// Says how a field of a batch is normalised. The channels are a sample's first axis, or its last axis,
/// which is then moved to the front.
///
/// @param scale the factor of each channel, or one for all
/// @param shift what is added after scaling; as many as there are scales
/// @param to the resulting dtype, one of [Normalization#TARGETS]
/// @param channelsFirst whether the channels are the last axis and are moved to the front
public record FieldNormalization(
    List<Float> scale, List<Float> shift, DType to, boolean channelsFirst) {
  private static final int MAX_CHANNELS = Normalization.MAX_CHANNELS;

  public FieldNormalization {
    scale = List.copyOf(scale);
    shift = List.copyOf(shift);
    MisuseException.requireRange("optNormalize: scales", scale.size(), 1, MAX_CHANNELS);
    if (shift.size() != scale.size()) {
      throw new MisuseException(
          "optNormalize: there must be as many shifts as scales (were "
              + shift.size()
              + " and "
              + scale.size()
              + ")");
    }
  }

  public FieldNormalization withChannelsFirst() {
    return new FieldNormalization(scale, shift, to, true);
  }

  /// The shape of a normalised sample.
  TensorShape shape(TensorShape sample) {
    if (!channelsFirst) {
      return sample;
    }
    long[] axes = sample.toArray();
    int last = axes.length - 1;
    return TensorShape.of(
        LongStream.concat(LongStream.of(axes[last]), LongStream.of(axes).limit(last)).toArray());
  }

  /// Returns the normalisation for samples of a shape.
  ///
  /// @param field the field; its samples may have another shape than the field's own
  /// @param sample the samples' shape, not empty
  /// @throws MisuseException if the field cannot be normalised this way
  Normalization of(Field field, TensorShape sample) {
    check(field, sample);
    long elements = LongStream.of(sample.toArray()).reduce(1, (a, b) -> a * b);
    int channels = channelsFirst ? (int) sample.dimension(sample.rank() - 1) : scale.size();
    boolean last = channelsFirst && channels > 1;
    int factors = last ? channels : scale.size();
    return new Normalization(
        field.dtype(), to, elements / factors, last, each(scale, factors), each(shift, factors));
  }

  private static List<Float> each(List<Float> values, int count) {
    return values.size() == count ? values : Collections.nCopies(count, values.getFirst());
  }

  private void check(Field field, TensorShape sample) {
    String subject = "optNormalize: the field '" + field.name() + "' ";
    if (!Normalization.SOURCES.contains(field.dtype())) {
      throw new MisuseException(
          subject
              + "has dtype "
              + field.dtype()
              + "; it must be one of "
              + Normalization.SOURCES.stream().sorted().toList());
    }
    if (channelsFirst && sample.rank() < 2) {
      throw new MisuseException(
          "optChannelsFirst: the field '"
              + field.name()
              + "' has samples of shape "
              + sample
              + "; they must have two axes or more, the channels last");
    }
    int axis = channelsFirst ? sample.rank() - 1 : 0;
    long channels = sample.rank() == 0 ? 1 : sample.dimension(axis);
    if (scale.size() > 1 && scale.size() != channels) {
      boolean lastFits =
          !channelsFirst
              && sample.rank() > 1
              && sample.dimension(sample.rank() - 1) == scale.size();
      throw new MisuseException(
          subject
              + "has samples of shape "
              + sample
              + ", with the channels "
              + (channelsFirst ? "last" : "first")
              + "; there must be one scale, or "
              + channels
              + " (was "
              + scale.size()
              + ")"
              + (lastFits ? "; optChannelsFirst is for channels that come last" : ""));
    }
    long most = Integer.MAX_VALUE;
    long elements = field.sampleBytes() / field.dtype().alignmentBytes();
    if (elements > most || (channelsFirst && channels > MAX_CHANNELS)) {
      throw new MisuseException(
          subject
              + "has samples of shape "
              + sample
              + "; they must have at most "
              + most
              + " elements, and "
              + MAX_CHANNELS
              + " channels that differ or come last");
    }
  }
}
