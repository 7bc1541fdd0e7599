// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.checksum;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/// Computes CRC32C checksums (Castagnoli, RFC 3720) of memory, and joins the checksums of adjacent parts. Thread-safe.
public final class Crc32c {
  /// The checksum of no bytes.
  public static final int OF_NOTHING = 0;

  /// The polynomial with its bits reversed, like the checksum: bit 0 is the coefficient of x³¹.
  private static final int POLYNOMIAL = 0x82F63B78;

  private static final int MASK_DELTA = 0xa282ead8;

  /// The step at which `CRC32C` is fastest: long enough for its vector loop, and short enough for
  /// the caches.
  private static final long STEP_BYTES = 1 << 20;

  /// The polynomials x^(8·2ⁿ) modulo [#POLYNOMIAL]: multiplying a checksum by entry n moves it
  /// past 2ⁿ bytes.
  private static final int[] PAST_BYTES = new int[Long.SIZE];

  static {
    // x⁸ moves a checksum past one byte.
    PAST_BYTES[0] = 1 << (31 - 8);
    for (int n = 1; n < PAST_BYTES.length; n++) {
      PAST_BYTES[n] = multiply(PAST_BYTES[n - 1], PAST_BYTES[n - 1]);
    }
  }

  private Crc32c() {}

  /// Returns the checksum of host memory.
  public static int of(MemorySegment bytes) {
    CRC32C checksum = new CRC32C();
    for (long done = 0; done < bytes.byteSize(); done += STEP_BYTES) {
      long step = Math.min(STEP_BYTES, bytes.byteSize() - done);
      checksum.update(buffer(bytes.asSlice(done, step)));
    }
    return (int) checksum.getValue();
  }

  /// Returns a checksum as TFRecord stores it: rotated and shifted, so that the checksum of bytes that contain checksums
  /// is not weak.
  public static int masked(int checksum) {
    return Integer.rotateRight(checksum, 15) + MASK_DELTA;
  }

  /// Returns the memory as a buffer. Copies heap arrays other than `byte[]`, since they cannot be byte buffers.
  private static ByteBuffer buffer(MemorySegment bytes) {
    boolean copied = bytes.heapBase().filter(array -> !(array instanceof byte[])).isPresent();
    return copied ? ByteBuffer.wrap(bytes.toArray(ValueLayout.JAVA_BYTE)) : bytes.asByteBuffer();
  }

  /// Returns the checksum of two adjacent parts together, from the checksum of each.
  ///
  /// @param secondLength the second part's length in bytes
  public static int combine(int first, int second, long secondLength) {
    int moved = first;
    for (long left = secondLength; left != 0; left &= left - 1) {
      moved = multiply(moved, PAST_BYTES[Long.numberOfTrailingZeros(left)]);
    }
    return moved ^ second;
  }

  /// Returns the product of two polynomials over GF(2), modulo [#POLYNOMIAL].
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
