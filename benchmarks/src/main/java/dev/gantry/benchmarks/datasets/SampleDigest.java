// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import ai.djl.ndarray.NDArray;
import ai.djl.training.dataset.Batch;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.FieldView;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongFunction;
import java.util.zip.CRC32C;

/// A digest of samples: the sum of each image's checksum multiplied by a factor from its label.
/// The order of the samples does not change the digest; a different value does. For one thread.
final class SampleDigest {
  private static final ValueLayout.OfLong LABEL = ValueLayout.JAVA_LONG_UNALIGNED;

  private static final Map<Samples, SampleDigest> WRITTEN = new ConcurrentHashMap<>();

  private final CRC32C crc = new CRC32C();
  private long samples;
  private long sum;

  /// Returns the digest of [Samples] as they were written; computes it once.
  static SampleDigest of(Samples written) {
    return WRITTEN.computeIfAbsent(written, SampleDigest::computed);
  }

  private static SampleDigest computed(Samples written) {
    SampleDigest digest = new SampleDigest();
    LongFunction<byte[]> images = written.images();
    for (long i = 0; i < written.count(); i++) {
      digest.add(i, ByteBuffer.wrap(images.apply(i)));
    }
    return digest;
  }

  /// @param image the image as the remaining bytes of the buffer
  void add(long label, ByteBuffer image) {
    crc.reset();
    crc.update(image);
    samples++;
    sum += (label + 1) * crc.getValue();
  }

  void add(RingBatch<BatchView> batch) {
    FieldView images = batch.label().fields().get(0);
    FieldView labels = batch.label().fields().get(1);
    int count = batch.label().samples();
    long imageStride = images.strides().getFirst();
    long labelStride = labels.strides().getFirst() * Long.BYTES;
    long imageBytes = images.shape().elements().orElseThrow() / count;
    MemorySegment imageData = copy(batch, images.offset(), (count - 1) * imageStride + imageBytes);
    MemorySegment labelData = copy(batch, labels.offset(), (count - 1) * labelStride + Long.BYTES);
    for (int i = 0; i < count; i++) {
      add(
          labelData.get(LABEL, i * labelStride),
          imageData.asSlice(i * imageStride, imageBytes).asByteBuffer());
    }
  }

  private static MemorySegment copy(RingBatch<BatchView> batch, long offset, long length) {
    MemorySegment target = MemorySegment.ofArray(new byte[Math.toIntExact(length)]);
    batch.region(offset, length).copyTo(target);
    return target;
  }

  void add(Batch batch) {
    NDArray images = batch.getData().singletonOrThrow();
    long[] labels = batch.getLabels().singletonOrThrow().toLongArray();
    ByteBuffer bytes = images.toByteBuffer();
    int imageBytes = bytes.remaining() / labels.length;
    for (int i = 0; i < labels.length; i++) {
      add(labels[i], bytes.slice(i * imageBytes, imageBytes));
    }
  }

  /// @throws WrongBytesException if this digest differs from `expected`
  void require(String contestant, SampleDigest expected) {
    if (samples != expected.samples || sum != expected.sum) {
      throw new WrongBytesException(
          "%s: %d samples with sum %x, not %d with %x"
              .formatted(contestant, samples, sum, expected.samples, expected.sum));
    }
    System.out.printf("# %s: checked, %,d samples%n", contestant, samples);
  }
}
