// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import static dev.gantry.formats.internal.images.ImageHeader.u16;
import static dev.gantry.formats.internal.images.ImageHeader.u32;
import static dev.gantry.formats.internal.images.ImageHeader.u8;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Walks through the segments of a JPEG up to the first scan (ITU-T T.81, annex B).
final class JpegSegments {
  /// The marker SOI, with which each file starts.
  static final int START = 0xFFD8;

  static final int MIN_BYTES = 4;

  /// The most scans of a picture. More scans would take long to decode, and no encoder makes
  /// them: a progressive picture has about ten.
  private static final int MAX_SCANS = 100;

  private static final int SCAN = 0xDA;
  private static final int END = 0xD9;
  private static final int COMMENT = 0xFE;
  private static final int APP0 = 0xE0;
  private static final int APP1 = 0xE1;
  private static final int APP14 = 0xEE;
  private static final int APP15 = 0xEF;
  private static final int EXIF = 0x45786966;
  private static final int ADOBE = 0x41646F62;
  private static final int ADOBE_BYTES = 12;
  private static final int JFIF_NAME = 0x4A464946;
  private static final int JFIF_BYTES = 14;

  /// An APP0 segment without density and thumbnail, which declares that three components are
  /// YCbCr.
  private static final byte[] JFIF = {
    (byte) 0xFF, (byte) 0xE0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0
  };

  private final MemorySegment encoded;
  private final List<MemorySegment> essence = new ArrayList<>();
  private int width;
  private int height;
  private int components;
  private int orientation = Exif.UPRIGHT;
  private int transform;
  private boolean jfif;
  private @Nullable MemorySegment adobe;
  private boolean namedRgb;
  private boolean progressive;
  private boolean huffman;

  JpegSegments(MemorySegment encoded) {
    this.encoded = encoded;
  }

  ImageHeader header() throws IOException {
    long at = 2;
    while (true) {
      at = marker(at);
      int code = u8(encoded, at + 1);
      if (code == SCAN) {
        break;
      }
      if (code == END) {
        throw new IOException("the JPEG ends at byte " + at + ", before its first scan");
      }
      long end = end(at);
      segment(code, at, end);
      at = end;
    }
    if (components == 0) {
      throw new IOException("the JPEG's first scan, at byte " + at + ", has no frame before it");
    }
    checkScans(end(at));
    essence.add(encoded.asSlice(at));
    if (isYcbcr()) {
      essence.addFirst(MemorySegment.ofArray(JFIF));
    } else if (adobe != null) {
      essence.addFirst(adobe);
    }
    essence.addFirst(encoded.asSlice(0, 2));
    return new ImageHeader(
        ImageHeader.Kind.JPEG,
        width,
        height,
        components,
        orientation,
        components == 4 && transform != 0,
        components == 3 && huffman && !namedRgb && (adobe == null || transform == 1),
        essence);
  }

  /// Whether three components are YCbCr: a JFIF segment says so whatever else the file says, as
  /// libjpeg has it, then an Adobe segment decides, and then the components' names.
  private boolean isYcbcr() {
    return components == 3 && (jfif || (adobe == null ? !namedRgb : transform != 0));
  }

  /// Returns the offset of the last FF byte before the next marker's code; any number of FF bytes
  /// may come before it.
  private long marker(long from) throws IOException {
    long at = from;
    while (at + 4 <= encoded.byteSize() && u8(encoded, at) == 0xFF && u8(encoded, at + 1) == 0xFF) {
      at++;
    }
    if (at + 4 > encoded.byteSize()) {
      throw truncated();
    }
    if (u8(encoded, at) != 0xFF) {
      throw new IOException("there is no JPEG marker at byte " + at);
    }
    return at;
  }

  /// Returns the end of the segment whose marker is at `at`.
  private long end(long at) throws IOException {
    int length = u16(encoded, at + 2);
    if (length < 2) {
      throw new IOException("the JPEG segment at byte " + at + " has a length of " + length);
    }
    if (at + 2 + length > encoded.byteSize()) {
      throw truncated();
    }
    return at + 2 + length;
  }

  private IOException truncated() {
    return new IOException("the JPEG is cut off after " + encoded.byteSize() + " bytes");
  }

  private void segment(int code, long at, long end) throws IOException {
    long data = at + 4;
    long bytes = end - data;
    if (isFrame(code)) {
      frame(code, at, bytes);
    } else if (code == APP1 && bytes > 6 && u32(encoded, data) == EXIF) {
      orientation = Exif.orientation(encoded.asSlice(data + 6, bytes - 6));
    } else if (code == APP14 && bytes >= ADOBE_BYTES && u32(encoded, data) == ADOBE) {
      adobe = encoded.asSlice(at, end - at);
      transform = u8(encoded, data + 11);
    } else if (code == APP0 && bytes >= JFIF_BYTES && u32(encoded, data) == JFIF_NAME) {
      jfif |= u8(encoded, data + 4) == 0;
    }
    if (code != COMMENT && (code < APP0 || code > APP15)) {
      essence.add(encoded.asSlice(at, end - at));
    }
  }

  /// Whether a marker's code is one of SOF0 to SOF15; the codes of DHT, JPG and DAC lie between
  /// them.
  private static boolean isFrame(int code) {
    return code >= 0xC0 && code <= 0xCF && code != 0xC4 && code != 0xC8 && code != 0xCC;
  }

  private void frame(int code, long at, long bytes) throws IOException {
    boolean known = code <= 0xC2 || code == 0xC9 || code == 0xCA;
    if (!known || bytes < 6 || u8(encoded, at + 4) != Byte.SIZE) {
      throw new IOException(
          "the JPEG frame at byte %d is of a kind that is not decoded: SOF%d, %d bits"
              .formatted(at, code - 0xC0, bytes < 1 ? 0 : u8(encoded, at + 4)));
    }
    height = u16(encoded, at + 5);
    width = u16(encoded, at + 7);
    int found = u8(encoded, at + 9);
    if (components != 0 || bytes < 6 + 3L * found || (found != 1 && found != 3 && found != 4)) {
      throw new IOException(
          "the JPEG frame at byte %d is the second, or has %d components, not 1, 3 or 4"
              .formatted(at, found));
    }
    components = found;
    progressive = code == 0xC2 || code == 0xCA;
    huffman = code <= 0xC2;
    namedRgb =
        found == 3
            && u8(encoded, at + 10) == 'R'
            && u8(encoded, at + 13) == 'G'
            && u8(encoded, at + 16) == 'B';
  }

  private void checkScans(long from) throws IOException {
    long end = encoded.byteSize() - 2;
    while (end >= from && u16(encoded, end) != (0xFF00 | END)) {
      end--;
    }
    if (end < from) {
      throw truncated();
    }
    if (progressive) {
      int scans = 1;
      for (long at = from; at < end; at++) {
        if (u8(encoded, at) == 0xFF && u8(encoded, at + 1) == SCAN) {
          scans++;
        }
      }
      if (scans > MAX_SCANS) {
        throw new IOException("the JPEG has " + scans + " scans, more than " + MAX_SCANS);
      }
    }
  }
}
