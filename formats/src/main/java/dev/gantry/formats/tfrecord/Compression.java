// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.internal.source.ByteSource;
import dev.gantry.formats.internal.source.ByteWindow;
import dev.gantry.formats.internal.source.InflatedSource;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/// How all of a TFRecord file is compressed.
public enum Compression {
  NONE,
  /// The file is one or more gzip members, one after the other (RFC 1952).
  GZIP,
  /// The file is one zlib stream (RFC 1950).
  ZLIB;

  /// Detects a file's compression from its first bytes.
  ///
  /// The length of a first record may look like the start of a gzip or zlib stream. So if the
  /// first 12 bytes are a record's header with a right checksum, the file is uncompressed.
  static Compression of(SourceFile file) {
    int length = (int) Math.min(Framing.HEADER_BYTES, file.size());
    if (length < 2) {
      return NONE;
    }
    // A store's own threads write the bytes of a remote file, so the memory is shared.
    try (Arena arena = file.isLocal() ? Arena.ofConfined() : Arena.ofShared()) {
      MemorySegment start = arena.allocate(length);
      boolean _ = file.read(start, 0, length, false);
      ByteBuffer bytes = start.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
      if (length == Framing.HEADER_BYTES && new Framing().isHeader(bytes, 0)) {
        return NONE;
      }
      bytes.clear();
      return byMagic(Byte.toUnsignedInt(bytes.get(0)), Byte.toUnsignedInt(bytes.get(1)));
    }
  }

  /// Decompresses a file that has this compression; must not be called on NONE.
  InflatedSource inflate(SourceFile file) {
    return this == ZLIB ? InflatedSource.zlib(file) : InflatedSource.gzip(file);
  }

  /// Answers as [TfRecordReader#isTfRecord] does.
  static boolean isTfRecord(SourceFile file) {
    Compression compression = of(file);
    ByteSource bytes =
        compression == NONE ? new ByteSource.Plain(file, 0) : compression.inflate(file);
    try (ByteWindow window = new ByteWindow(bytes, 0, TfRecordOptions.LEAST_CHUNK_BYTES)) {
      int have = window.require(Framing.HEADER_BYTES);
      return have < Framing.HEADER_BYTES
          ? have == 0 && compression != NONE
          : new Framing().isHeader(window.bytes(), window.start());
    } catch (IOException _) {
      return false;
    }
  }

  private static Compression byMagic(int first, int second) {
    if (first == 0x1f && second == 0x8b) {
      return GZIP;
    }
    // RFC 1950: the first byte names the deflate method and a window of up to 32 KiB, and the two
    // bytes together are a multiple of 31.
    boolean zlib = (first & 0xf) == 8 && first >> 4 <= 7 && (first << 8 | second) % 31 == 0;
    return zlib ? ZLIB : NONE;
  }
}
