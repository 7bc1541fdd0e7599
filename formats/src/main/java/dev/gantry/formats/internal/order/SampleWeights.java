// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;

/// Draws samples in proportion to their weights, each draw from all samples. Immutable.
public final class SampleWeights {
  /// The most samples that may have weights.
  public static final int MAX_SAMPLES = 1 << 27;

  /// The purpose of the random numbers by which samples are drawn.
  private static final long DRAWS = 6;

  private static final int IDENTITY_BYTES = 8;

  private final long seed;

  /// The sum of the weights of each sample and all before it.
  private final double[] sums;

  private final String identity;

  private SampleWeights(long seed, double[] sums, String identity) {
    this.seed = seed;
    this.sums = sums;
    this.identity = identity;
  }

  /// @param weights one for each sample, which this method overwrites and keeps
  /// @throws MisuseException if a weight is negative or not finite, or all are 0
  public static SampleWeights of(long seed, double[] weights) {
    MessageDigest digest = OrderIdentity.sha256();
    ByteBuffer bits = ByteBuffer.allocate(Double.BYTES);
    double sum = 0;
    for (int i = 0; i < weights.length; i++) {
      if (!(weights[i] >= 0) || !Double.isFinite(sum + weights[i])) {
        throw new MisuseException(
            "the weight of sample "
                + i
                + " must be 0 or more, and the sum of all finite (was "
                + weights[i]
                + ")");
      }
      digest.update(bits.putDouble(0, weights[i]).rewind());
      sum += weights[i];
      weights[i] = sum;
    }
    if (sum == 0) {
      throw new MisuseException("all " + weights.length + " samples have the weight 0");
    }
    String hash = HexFormat.of().formatHex(digest.digest(), 0, IDENTITY_BYTES);
    return new SampleWeights(seed, weights, "weights:" + seed + ":" + hash);
  }

  /// The number of the sample that is drawn.
  ///
  /// @param draw the draw's number in the epoch, from 0
  long sample(long epoch, long draw) {
    double all = sums[sums.length - 1];
    double part = (Mix.at(Mix.key(seed, epoch, DRAWS), draw) >>> 11) * 0x1p-53;
    // If the product is rounded up to the sum, the number just below the sum is searched.
    int found = Arrays.binarySearch(sums, Math.min(part * all, Math.nextDown(all)));
    int sample = found < 0 ? -found - 1 : found + 1;
    // If a sum is found exactly, its sample ends there, and so do the samples of weight 0 after
    // it; they are skipped.
    while (found >= 0 && sums[sample] == sums[found]) {
      sample++;
    }
    return sample;
  }

  /// A text that differs for other weights or another seed.
  String identity() {
    return identity;
  }
}
