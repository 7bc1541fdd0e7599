// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import static dev.gantry.formats.internal.images.ImageHeader.u32;
import static dev.gantry.formats.internal.images.ImageHeader.u8;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;

/// Walks through the chunks of a PNG (ISO/IEC 15948, clause 5).
final class PngChunks {
  /// The first four bytes of each file.
  static final int SIGNATURE = 0x89504E47;

  private static final int SIGNATURE_BYTES = 8;
  private static final int FRAME_BYTES = 12;
  private static final int HEADER_BYTES = 13;
  private static final int COLOUR_BYTES = 3;
  private static final int PALETTE_BYTES = 256 * COLOUR_BYTES;
  static final int MIN_BYTES = SIGNATURE_BYTES + FRAME_BYTES + HEADER_BYTES;

  private static final int HEADER = 0x49484452;
  private static final int PALETTE = 0x504C5445;
  private static final int DATA = 0x49444154;
  private static final int END = 0x49454E44;
  private static final int EXIF = 0x65584966;

  private final MemorySegment encoded;

  PngChunks(MemorySegment encoded) {
    this.encoded = encoded;
  }

  ImageHeader header() throws IOException {
    if (u32(encoded, SIGNATURE_BYTES) != HEADER_BYTES
        || u32(encoded, SIGNATURE_BYTES + 4) != HEADER) {
      throw new IOException("the PNG does not begin with a header chunk");
    }
    List<MemorySegment> essence = new ArrayList<>();
    essence.add(encoded.asSlice(0, SIGNATURE_BYTES));
    int orientation = Exif.UPRIGHT;
    long at = SIGNATURE_BYTES;
    int type;
    do {
      long left = encoded.byteSize() - at - FRAME_BYTES;
      if (left < 0 || Integer.toUnsignedLong(u32(encoded, at)) > left) {
        throw new IOException("the PNG is cut off after " + encoded.byteSize() + " bytes");
      }
      long bytes = Integer.toUnsignedLong(u32(encoded, at));
      type = u32(encoded, at + 4);
      if (type == HEADER && at != SIGNATURE_BYTES) {
        throw new IOException("the PNG has a second header chunk, at byte " + at);
      }
      switch (type) {
        case HEADER, DATA, END -> {
          checkSum(at, bytes);
          essence.add(encoded.asSlice(at, bytes + FRAME_BYTES));
        }
        case PALETTE -> {
          checkSum(at, bytes);
          essence.add(wholePalette(at, bytes));
        }
        case EXIF -> orientation = Exif.orientation(encoded.asSlice(at + 8, bytes));
        default -> {}
      }
      at += bytes + FRAME_BYTES;
    } while (type != END);
    return new ImageHeader(
        ImageHeader.Kind.PNG,
        u32(encoded, SIGNATURE_BYTES + 8),
        u32(encoded, SIGNATURE_BYTES + 12),
        components(u8(encoded, SIGNATURE_BYTES + 17)),
        orientation,
        false,
        false,
        essence);
  }

  /// Returns a palette chunk of as many colours as a byte can name. The colours that the file does
  /// not have are black, as in libpng and Pillow; the JDK would take the file's last colour. The
  /// checksum is 0, since the JDK does not check it.
  private MemorySegment wholePalette(long at, long bytes) {
    byte[] whole = new byte[PALETTE_BYTES + FRAME_BYTES];
    int known = (int) Math.min(bytes - bytes % COLOUR_BYTES, PALETTE_BYTES);
    ByteBuffer.wrap(whole).putInt(PALETTE_BYTES).putInt(PALETTE);
    MemorySegment.copy(encoded, ValueLayout.JAVA_BYTE, at + 8, whole, 8, known);
    return MemorySegment.ofArray(whole);
  }

  private static int components(int colorType) throws IOException {
    return switch (colorType) {
      case 0, 3 -> 1;
      case 4 -> 2;
      case 2 -> 3;
      case 6 -> 4;
      default -> throw new IOException("the PNG has the unknown colour type " + colorType);
    };
  }

  private void checkSum(long at, long bytes) throws IOException {
    CRC32 sum = new CRC32();
    for (long done = 4; done < bytes + 8; ) {
      long step = Math.min(bytes + 8 - done, 1 << 30);
      sum.update(encoded.asSlice(at + done, step).asByteBuffer());
      done += step;
    }
    if ((int) sum.getValue() != u32(encoded, at + 8 + bytes)) {
      throw new IOException("the checksum of the PNG's chunk at byte " + at + " does not agree");
    }
  }
}
