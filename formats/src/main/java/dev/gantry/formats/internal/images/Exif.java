// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/// Finds the orientation in Exif data. Damaged data count as upright.
final class Exif {
  /// The orientation of a picture that need not be turned.
  static final int UPRIGHT = 1;

  private static final int MAX_ORIENTATION = 8;
  private static final int HEADER_BYTES = 8;
  private static final int ENTRY_BYTES = 12;
  private static final int ORIENTATION_TAG = 0x0112;
  private static final int SHORT_TYPE = 3;

  private Exif() {}

  /// @param tiff the Exif data, from their byte order mark on
  /// @return the orientation, 1 to 8, as Exif numbers it
  static int orientation(MemorySegment tiff) {
    if (tiff.byteSize() < HEADER_BYTES) {
      return UPRIGHT;
    }
    ByteOrder order =
        tiff.get(ValueLayout.JAVA_BYTE, 0) == 'I' ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN;
    ValueLayout.OfShort u16 = ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(order);
    ValueLayout.OfInt u32 = ValueLayout.JAVA_INT_UNALIGNED.withOrder(order);
    long directory = Integer.toUnsignedLong(tiff.get(u32, 4));
    if (directory > tiff.byteSize() - Short.BYTES) {
      return UPRIGHT;
    }
    long entry = directory + Short.BYTES;
    for (int left = tiff.get(u16, directory) & 0xFFFF;
        left > 0 && entry <= tiff.byteSize() - ENTRY_BYTES;
        left--, entry += ENTRY_BYTES) {
      if ((tiff.get(u16, entry) & 0xFFFF) == ORIENTATION_TAG
          && tiff.get(u16, entry + 2) == SHORT_TYPE) {
        int found = tiff.get(u16, entry + 8);
        return found >= UPRIGHT && found <= MAX_ORIENTATION ? found : UPRIGHT;
      }
    }
    return UPRIGHT;
  }
}
