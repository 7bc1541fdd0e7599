// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import java.nio.ByteBuffer;
import java.util.function.LongFunction;
import java.util.zip.CRC32C;

/// A sum over samples, each image's checksum bound to its label: the same in any order, and another
/// where a value is. For one thread.
final class SampleDigest {
  private final CRC32C crc = new CRC32C();
  private long samples;
  private long sum;

  /// The digest of samples `0` to `count - 1`, each with its number as label.
  static SampleDigest of(long count, LongFunction<byte[]> images) {
    SampleDigest digest = new SampleDigest();
    for (long i = 0; i < count; i++) {
      digest.add(i, ByteBuffer.wrap(images.apply(i)));
    }
    return digest;
  }

  /// @param image all that remains
  void add(long label, ByteBuffer image) {
    crc.reset();
    crc.update(image);
    samples++;
    sum += (label + 1) * crc.getValue();
  }

  /// @throws IllegalStateException if it is another than `expected`
  void require(String contestant, SampleDigest expected) {
    if (samples != expected.samples || sum != expected.sum) {
      throw new IllegalStateException(
          "%s: %d samples with sum %x, not %d with %x"
              .formatted(contestant, samples, sum, expected.samples, expected.sum));
    }
    System.out.printf("# %s: checked, %,d samples%n", contestant, samples);
  }
}
