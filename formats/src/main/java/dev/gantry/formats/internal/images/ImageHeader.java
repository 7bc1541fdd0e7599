// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;

/// The header of an encoded picture.
///
/// @param components how many colour components a pixel has
/// @param orientation the orientation, 1 to 8, as Exif numbers it
/// @param ycck whether the first three inks of a JPEG's four were transformed as RGB is to YCbCr
/// @param common whether the picture is a Huffman-coded JPEG of three components that every
///     decoder interprets as YCbCr
/// @param essence the parts that a decoder needs. They lack comments, profiles, thumbnails and
///     other applications' data, which may be compressed
record ImageHeader(
    Kind kind,
    int width,
    int height,
    int components,
    int orientation,
    boolean ycck,
    boolean common,
    List<MemorySegment> essence) {
  /// The longest side that a picture may have, which is also JPEG's own limit.
  static final int MAX_SIDE = 65_535;

  enum Kind {
    JPEG,
    PNG
  }

  private static final ValueLayout.OfShort U16 =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
  private static final ValueLayout.OfInt U32 =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);

  /// Reads the header.
  ///
  /// @param maxPixels the most pixels that a picture may have
  /// @throws IOException if the picture is neither JPEG nor PNG, is damaged, or has too many
  ///     pixels
  static ImageHeader of(MemorySegment encoded, long maxPixels) throws IOException {
    ImageHeader header = read(encoded);
    if (header.width < 1
        || header.height < 1
        || header.width > MAX_SIDE
        || header.height > MAX_SIDE
        || (long) header.width * header.height > maxPixels) {
      throw new IOException(
          "the picture has %d x %d pixels; its sides may have 1 to %d, and all of it at most %d"
              .formatted(
                  Integer.toUnsignedLong(header.width),
                  Integer.toUnsignedLong(header.height),
                  MAX_SIDE,
                  maxPixels));
    }
    return header;
  }

  private static ImageHeader read(MemorySegment encoded) throws IOException {
    if (encoded.byteSize() >= JpegSegments.MIN_BYTES && u16(encoded, 0) == JpegSegments.START) {
      return new JpegSegments(encoded).header();
    }
    if (encoded.byteSize() >= PngChunks.MIN_BYTES && u32(encoded, 0) == PngChunks.SIGNATURE) {
      return new PngChunks(encoded).header();
    }
    throw new IOException("this is neither a JPEG nor a PNG picture, or its start is missing");
  }

  static int u8(MemorySegment bytes, long offset) {
    return bytes.get(ValueLayout.JAVA_BYTE, offset) & 0xFF;
  }

  static int u16(MemorySegment bytes, long offset) {
    return bytes.get(U16, offset) & 0xFFFF;
  }

  static int u32(MemorySegment bytes, long offset) {
    return bytes.get(U32, offset);
  }

  /// Returns the parts of the essence, end to end.
  byte[] essenceBytes() throws IOException {
    long bytes = essence.stream().mapToLong(MemorySegment::byteSize).sum();
    if (bytes > Integer.MAX_VALUE - Long.BYTES) {
      throw new IOException("the picture's file is longer than 2 GB");
    }
    MemorySegment all = MemorySegment.ofArray(new byte[(int) bytes]);
    long at = 0;
    for (MemorySegment part : essence) {
      all.asSlice(at).copyFrom(part);
      at += part.byteSize();
    }
    return (byte[]) all.heapBase().orElseThrow();
  }
}
