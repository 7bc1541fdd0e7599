package dev.gantry.formats.tfrecord;

import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/// Tells how a file is compressed from its first bytes.
///
/// The length of a first record may look like the beginning of a gzip or zlib stream; it is one
/// only where it is no header with a right checksum.
final class CompressionDetector {
  private CompressionDetector() {}

  static Compression detect(SourceFile file) {
    int length = (int) Math.min(Framing.HEADER_BYTES, file.size());
    if (length < 2) {
      return Compression.NONE;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment start = arena.allocate(length);
      boolean _ = file.read(start, 0, length, false);
      ByteBuffer bytes = start.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
      if (length == Framing.HEADER_BYTES && Framing.isHeader(bytes, 0, new MaskedCrc32c())) {
        return Compression.NONE;
      }
      bytes.clear();
      return byMagic(Byte.toUnsignedInt(bytes.get(0)), Byte.toUnsignedInt(bytes.get(1)));
    }
  }

  private static Compression byMagic(int first, int second) {
    if (first == 0x1f && second == 0x8b) {
      return Compression.GZIP;
    }
    // RFC 1950: deflate, a window of up to 32 KiB, and a check of the two bytes.
    boolean zlib = (first & 0xf) == 8 && first >> 4 <= 7 && (first << 8 | second) % 31 == 0;
    return zlib ? Compression.ZLIB : Compression.NONE;
  }
}
