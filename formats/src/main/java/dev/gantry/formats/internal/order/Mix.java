// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

/// A counter-based random number generator: computes each number from a key and a counter. It is written
/// out here, since an order must be the same on every JVM.
public final class Mix {
  /// 2^64 divided by the golden ratio: the step of SplittableRandom.
  private static final long STEP = 0x9E3779B97F4A7C15L;

  private Mix() {}

  /// Returns the key for the numbers that an epoch uses for one `purpose`.
  public static long key(long seed, long epoch, long purpose) {
    return at(at(at(seed, 0), epoch), purpose);
  }

  /// Returns the number at `counter`; each of its 64 bits depends on all bits of key and counter.
  static long at(long key, long counter) {
    return finish(finish(counter * STEP + STEP) ^ key);
  }

  /// Returns the number at `counter`, scaled to the range from 0 to `bound`, exclusively.
  ///
  /// @param bound 1 or more; the bias is below bound / 2^64
  static long below(long bound, long key, long counter) {
    return Math.unsignedMultiplyHigh(at(key, counter), bound);
  }

  /// Mixes 32 bits by Wellons' lowbias32, which the processor's vector units can compute.
  static int of32(int bits) {
    int mixed = (bits ^ (bits >>> 16)) * 0x21F0AAAD;
    mixed = (mixed ^ (mixed >>> 15)) * 0x735A2D97;
    return mixed ^ (mixed >>> 15);
  }

  /// Mixes 64 bits by Stafford's variant 13 of MurmurHash3's finalizer, as SplittableRandom does.
  private static long finish(long bits) {
    long mixed = (bits ^ (bits >>> 30)) * 0xBF58476D1CE4E5B9L;
    mixed = (mixed ^ (mixed >>> 27)) * 0x94D049BB133111EBL;
    return mixed ^ (mixed >>> 31);
  }
}
