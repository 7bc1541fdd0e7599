// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.FieldView;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.BitSet;
import java.util.Locale;

/// Compares batches of [ImageSamples] with what was written. For one thread.
final class BatchCheck {
  private static final ValueLayout.OfLong LABEL = ValueLayout.JAVA_LONG_UNALIGNED;

  private final ImageSamples.Pixels pixels = new ImageSamples.Pixels();
  private final BitSet seen = new BitSet();

  /// @throws IllegalStateException if a value is another, or a sample comes twice
  void batch(RingBatch<BatchView> batch) {
    FieldView images = batch.label().fields().get(0);
    FieldView labels = batch.label().fields().get(1);
    int samples = batch.label().samples();
    long imageStride = images.strides().getFirst();
    long labelStride = labels.strides().getFirst() * Long.BYTES;
    MemorySegment imageBytes =
        copy(batch, images.offset(), (samples - 1) * imageStride + ImageSamples.IMAGE_BYTES);
    MemorySegment labelBytes =
        copy(batch, labels.offset(), (samples - 1) * labelStride + Long.BYTES);
    for (int i = 0; i < samples; i++) {
      int number = Math.toIntExact(labelBytes.get(LABEL, i * labelStride));
      MemorySegment image = imageBytes.asSlice(i * imageStride, ImageSamples.IMAGE_BYTES);
      if (image.mismatch(MemorySegment.ofArray(pixels.of(number))) >= 0 || seen.get(number)) {
        throw new IllegalStateException(
            "batch %d: sample %d is not what was written, or comes again"
                .formatted(batch.number(), number));
      }
      seen.set(number);
    }
  }

  private static MemorySegment copy(RingBatch<BatchView> batch, long offset, long length) {
    MemorySegment target = MemorySegment.ofArray(new byte[Math.toIntExact(length)]);
    batch.region(offset, length).copyTo(target);
    return target;
  }

  String summary() {
    return String.format(Locale.ROOT, "%,d samples", seen.cardinality());
  }
}
