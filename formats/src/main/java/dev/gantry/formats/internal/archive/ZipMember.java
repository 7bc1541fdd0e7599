// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.archive;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.internal.files.ExtentStream;
import dev.gantry.formats.internal.weights.StridedReader;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.TensorDecoder;
import dev.gantry.formats.spi.WeightsCatalogue.Checksum;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;
import java.util.zip.Inflater;
import java.util.zip.InflaterInputStream;

/// A member of a ZIP archive.
///
/// @param extent the extent of the member's bytes in the file, as they are stored
/// @param size the member's decompressed size in bytes
/// @param crc32 the CRC-32 of the decompressed bytes
public record ZipMember(String name, Extent extent, long size, int crc32, boolean isDeflated) {
  private static final int STEP_BYTES = 64 << 10;

  /// The highest compression ratio that deflate can reach.
  private static final long MAX_RATIO = 1032;

  /// Refuses a stated size that the stored bytes cannot have, before memory is allocated for it.
  void requirePlausible() {
    if (isDeflated && size / MAX_RATIO > extent.length()) {
      throw malformed(
          "size-mismatch", extent.length() + " compressed bytes cannot become " + size + " bytes");
    }
    if (!isDeflated && size != extent.length()) {
      throw malformed("size-mismatch", subject() + " is stored in two different sizes");
    }
  }

  /// The start of an error's message.
  public String subject() {
    return "member '" + name + "'";
  }

  /// The checksum of a stored member.
  public Checksum checksum() {
    return new Checksum(extent, crc32);
  }

  /// Opens a stream of the member's decompressed bytes, from which [#fill] reads.
  public InputStream open(FileBytes file) {
    InputStream bytes = new ExtentStream(file, extent);
    return isDeflated ? new Inflated(bytes) : bytes;
  }

  /// A stream that owns its inflater and reads raw deflate data, without a zlib header.
  private static final class Inflated extends InflaterInputStream {
    Inflated(InputStream bytes) {
      super(bytes, new Inflater(true), STEP_BYTES);
    }

    @Override
    public void close() throws IOException {
      super.close();
      inf.end();
    }
  }

  /// Returns a tensor of this member, which must be deflated.
  ///
  /// @param encoding the encoding of the elements in the decompressed bytes: plain or
  ///     [Encoding.Strided]
  /// @param from the offset of the elements in the decompressed bytes
  public StoredTensor tensor(
      String name, DType dtype, TensorShape shape, Encoding encoding, long from) {
    TensorDecoder decoder =
        (file, _, target) -> {
          if (!(encoding instanceof Encoding.Strided strided)) {
            decompress(file, from, target);
            return;
          }
          try (Arena arena = Arena.ofConfined()) {
            MemorySegment inOrder =
                arena.allocate(strided.span(shape) * (dtype.bits() / Byte.SIZE), Long.BYTES);
            decompress(file, from, inOrder);
            StridedReader.read(dtype, shape, strided, inOrder, target);
          }
        };
    return new StoredTensor(name, dtype, shape, extent, new Encoding.Decoded("deflated", decoder));
  }

  /// Decompresses all of the member and compares its checksum.
  ///
  /// @param skipped how many of the first bytes the target does not get
  /// @param target memory for the bytes after the skipped ones; it may end before the member does
  void decompress(FileBytes file, long skipped, MemorySegment target) {
    try (CheckedInputStream stream = new CheckedInputStream(open(file), new CRC32())) {
      copy(stream, skipped, MemorySegment.NULL);
      copy(stream, target.byteSize(), target);
      copy(stream, size - skipped - target.byteSize(), MemorySegment.NULL);
      if (stream.read() >= 0) {
        throw malformed("size-mismatch", "more than " + size + " bytes come out of a member");
      }
      checksum().requireSame((int) stream.getChecksum().getValue());
    } catch (IOException e) {
      throw damaged(e);
    }
  }

  /// @param target memory for the bytes; empty if they are passed over
  private void copy(InputStream stream, long bytes, MemorySegment target) {
    ByteBuffer part = ByteBuffer.allocate(STEP_BYTES);
    for (long at = 0; at < bytes; at += part.limit()) {
      part.clear().limit((int) Math.min(STEP_BYTES, bytes - at));
      fill(stream, part);
      if (target.byteSize() > 0) {
        MemorySegment.copy(MemorySegment.ofBuffer(part.rewind()), 0, target, at, part.limit());
      }
    }
  }

  /// Fills a buffer that is on the heap from a stream of [#open].
  public void fill(InputStream stream, ByteBuffer target) {
    try {
      int count =
          stream.readNBytes(
              target.array(), target.arrayOffset() + target.position(), target.remaining());
      if (count < target.remaining()) {
        throw malformed("size-mismatch", "fewer than " + size + " bytes come out of a member");
      }
      target.position(target.limit());
    } catch (IOException e) {
      throw damaged(e);
    }
  }

  /// The fault of bytes that cannot be decompressed.
  public MalformedFileException damaged(IOException cause) {
    MalformedFileException damage =
        malformed("invalid-deflate", "compressed bytes are damaged: " + cause.getMessage());
    damage.initCause(cause);
    return damage;
  }

  private MalformedFileException malformed(String kind, String detail) {
    return new MalformedFileException(extent.file(), extent.offset(), kind, detail);
  }
}
