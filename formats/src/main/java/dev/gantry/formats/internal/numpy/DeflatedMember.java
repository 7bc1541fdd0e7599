// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

import dev.gantry.core.Extent;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.npy.NpyHeader;
import dev.gantry.formats.internal.npy.NpyInput;
import dev.gantry.formats.internal.weights.StridedReader;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue.Checksum;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;
import org.apache.commons.compress.compressors.deflate.DeflateCompressorInputStream;
import org.apache.commons.compress.compressors.deflate.DeflateParameters;

/// A deflated array in an archive. A load decompresses it, and compares its checksum.
///
/// @param extent the place of the compressed bytes
/// @param size the size of the decompressed `.npy` in bytes
/// @param crc32 the CRC-32 of the decompressed `.npy`
record DeflatedMember(Extent extent, long size, int crc32) {
  private static final int STEP_BYTES = 64 << 10;

  /// The highest compression ratio that deflate can reach.
  private static final long MAX_RATIO = 1032;

  /// Refuses a size that deflate could not reach, before memory is taken for it.
  void requirePlausible() {
    if (size / MAX_RATIO > extent.length()) {
      throw malformed(
          "size-mismatch", extent.length() + " compressed bytes cannot become " + size + " bytes");
    }
  }

  /// Decompresses the header, and returns the tensor that it describes.
  StoredTensor tensor(String name, String subject, FileBytes bytes) {
    try (InputStream stream = inflate(bytes)) {
      NpyHeader header =
          NpyHeader.read(
              new NpyInput(
                  extent.file(),
                  subject,
                  extent.offset(),
                  size,
                  true,
                  target -> fill(stream, target)));
      return new StoredTensor(
          name,
          header.dtype(),
          header.shape(),
          extent,
          new Encoding.Decoded("deflated", (file, _, target) -> decode(file, header, target)));
    } catch (IOException e) {
      throw damaged(e);
    }
  }

  private void decode(FileBytes file, NpyHeader header, MemorySegment target) {
    try (CheckedInputStream stream = new CheckedInputStream(inflate(file), new CRC32());
        Arena arena = Arena.ofConfined()) {
      fill(stream, ByteBuffer.allocate((int) header.headerBytes()));
      switch (header.encoding()) {
        case Encoding.Strided strided -> {
          MemorySegment inOrder = arena.allocate(header.dataBytes(), Long.BYTES);
          copy(stream, inOrder);
          StridedReader.read(header.dtype(), header.shape(), strided, inOrder, target);
        }
        case Encoding.Plain _, Encoding.Sliced _, Encoding.Decoded _ -> copy(stream, target);
      }
      if (stream.read() >= 0) {
        throw malformed("size-mismatch", "more than " + size + " bytes come out of a member");
      }
      new Checksum(extent, crc32).requireSame((int) stream.getChecksum().getValue());
    } catch (IOException e) {
      throw damaged(e);
    }
  }

  private void copy(InputStream stream, MemorySegment target) {
    ByteBuffer part = ByteBuffer.allocate(STEP_BYTES);
    for (long at = 0; at < target.byteSize(); at += part.limit()) {
      part.clear().limit((int) Math.min(STEP_BYTES, target.byteSize() - at));
      fill(stream, part);
      MemorySegment.copy(MemorySegment.ofBuffer(part.rewind()), 0, target, at, part.limit());
    }
  }

  /// Fills a buffer that is on the heap.
  private void fill(InputStream stream, ByteBuffer target) {
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

  private InputStream inflate(FileBytes file) {
    DeflateParameters raw = new DeflateParameters();
    raw.setWithZlibHeader(false);
    ArchiveChannel compressed =
        new ArchiveChannel(file, extent.offset(), extent.end(), extent.length());
    return new DeflateCompressorInputStream(Channels.newInputStream(compressed), raw);
  }

  private MalformedFileException damaged(IOException cause) {
    MalformedFileException damage =
        malformed("invalid-deflate", "compressed bytes are damaged: " + cause.getMessage());
    damage.initCause(cause);
    return damage;
  }

  private MalformedFileException malformed(String kind, String detail) {
    return new MalformedFileException(extent.file(), extent.offset(), kind, detail);
  }
}
