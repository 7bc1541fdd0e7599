// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

/// Numbers that look random, each computed from a key and a counter. Spelled out here since an
/// order must be the same on every JVM.
final class Mix {
  /// 2^64 divided by the golden ratio: the step of SplittableRandom.
  private static final long STEP = 0x9E3779B97F4A7C15L;

  private Mix() {}

  /// The key of what `purpose` numbers of an epoch are for.
  static long key(long seed, long epoch, long purpose) {
    return at(at(at(seed, 0), epoch), purpose);
  }

  /// The number at `counter`, all 64 bits of which depend on all bits of both.
  static long at(long key, long counter) {
    return finish(finish(counter * STEP + STEP) ^ key);
  }

  /// The number at `counter` scaled to 0 to `bound`, exclusively.
  ///
  /// @param bound 1 or more; the bias is below bound / 2^64
  static long below(long bound, long key, long counter) {
    return Math.unsignedMultiplyHigh(at(key, counter), bound);
  }

  /// As [#at] for 32 bits, which the processor's vectors multiply: Wellons' lowbias32.
  static int of32(int bits) {
    int mixed = (bits ^ (bits >>> 16)) * 0x21F0AAAD;
    mixed = (mixed ^ (mixed >>> 15)) * 0x735A2D97;
    return mixed ^ (mixed >>> 15);
  }

  /// Stafford's variant 13 of MurmurHash3's finalizer, as SplittableRandom has it.
  private static long finish(long bits) {
    long mixed = (bits ^ (bits >>> 30)) * 0xBF58476D1CE4E5B9L;
    mixed = (mixed ^ (mixed >>> 27)) * 0x94D049BB133111EBL;
    return mixed ^ (mixed >>> 31);
  }
}
