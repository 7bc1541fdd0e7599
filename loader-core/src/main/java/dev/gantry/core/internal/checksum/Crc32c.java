// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.checksum;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/// CRC32C checksums (Castagnoli, RFC 3720) of memory, and of joined parts by their checksums. Thread-safe.
public final class Crc32c {
  /// The checksum of no bytes.
  public static final int OF_NOTHING = 0;

  /// The polynomial with its bits reversed, as the checksum's own are: x³¹ is bit 0.
  private static final int POLYNOMIAL = 0x82F63B78;

  /// The step at which `CRC32C` is fastest: long enough for its vector loop, and within the caches.
  private static final long STEP_BYTES = 1 << 20;

  /// The polynomials x^(8·2ⁿ) modulo the polynomial: by these a checksum is moved past 2ⁿ bytes.
  private static final int[] PAST_BYTES = new int[Long.SIZE];

  static {
    // x⁸: past one byte.
    PAST_BYTES[0] = 1 << (31 - 8);
    for (int n = 1; n < PAST_BYTES.length; n++) {
      PAST_BYTES[n] = multiply(PAST_BYTES[n - 1], PAST_BYTES[n - 1]);
    }
  }

  private Crc32c() {}

  /// The checksum of host memory.
  public static int of(MemorySegment bytes) {
    CRC32C checksum = new CRC32C();
    for (long done = 0; done < bytes.byteSize(); done += STEP_BYTES) {
      long step = Math.min(STEP_BYTES, bytes.byteSize() - done);
      checksum.update(buffer(bytes.asSlice(done, step)));
    }
    return (int) checksum.getValue();
  }

  /// Heap arrays other than of bytes cannot be buffers, and are copied.
  private static ByteBuffer buffer(MemorySegment bytes) {
    boolean copied = bytes.heapBase().filter(array -> !(array instanceof byte[])).isPresent();
    return copied ? ByteBuffer.wrap(bytes.toArray(ValueLayout.JAVA_BYTE)) : bytes.asByteBuffer();
  }

  /// The checksum of two adjacent parts, from the checksum of each.
  ///
  /// @param secondLength the second part's length in bytes
  public static int combine(int first, int second, long secondLength) {
    int moved = first;
    for (long left = secondLength; left != 0; left &= left - 1) {
      moved = multiply(moved, PAST_BYTES[Long.numberOfTrailingZeros(left)]);
    }
    return moved ^ second;
  }

  /// The product of two polynomials over GF(2), modulo ours.
  private static int multiply(int a, int b) {
    int product = 0;
    int shifted = b;
    for (int bit = 31; bit >= 0; bit--) {
      if ((a >>> bit & 1) != 0) {
        product ^= shifted;
      }
      shifted = (shifted & 1) != 0 ? shifted >>> 1 ^ POLYNOMIAL : shifted >>> 1;
    }
    return product;
  }
}
