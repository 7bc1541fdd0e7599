// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.checksum;

import dev.gantry.core.MisuseException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/// Computes the CRC32C of each block of some bytes, which come in pieces of any size. Not thread-safe.
public final class BlockChecksums {
  private final long length;
  private final long blockBytes;
  private final int[] sums;
  private long done;

  /// @param length how many bytes there are in all
  /// @param blockBytes the size of a block; the last may be shorter
  public BlockChecksums(long length, long blockBytes) {
    if (length < 0 || blockBytes < 1) {
      throw new MisuseException(length + " bytes in blocks of " + blockBytes);
    }
    this.length = length;
    this.blockBytes = blockBytes;
    sums = new int[Math.toIntExact(Math.ceilDiv(length, blockBytes))];
    Arrays.fill(sums, Crc32c.OF_NOTHING);
  }

  /// Adds the next piece.
  ///
  /// @throws MisuseException if the piece is longer than what is still to come
  public void add(MemorySegment piece) {
    if (piece.byteSize() > length - done) {
      throw new MisuseException(
          piece.byteSize() + " bytes, where " + (length - done) + " are still to come");
    }
    for (long taken = 0; taken < piece.byteSize(); ) {
      long step = Math.min(piece.byteSize() - taken, leftOfBlock());
      add(Crc32c.of(piece.asSlice(taken, step)), step);
      taken += step;
    }
  }

  /// Adds the next piece by its checksum.
  ///
  /// @throws MisuseException if the piece goes past the end of its block, or of all bytes
  public void add(int sum, long pieceBytes) {
    if (pieceBytes > leftOfBlock()) {
      throw new MisuseException(pieceBytes + " bytes, where a block ends after " + leftOfBlock());
    }
    if (pieceBytes > 0) {
      int block = (int) (done / blockBytes);
      sums[block] = Crc32c.combine(sums[block], sum, pieceBytes);
      done += pieceBytes;
    }
  }

  /// Returns how many bytes the current block still lacks.
  public long leftOfBlock() {
    return Math.min(length - done, blockBytes - done % blockBytes);
  }

  /// Returns the checksums, one for each block.
  ///
  /// @throws IllegalStateException if bytes are still to come
  public int[] sums() {
    if (done < length) {
      throw new IllegalStateException("only " + done + " of " + length + " bytes were summed");
    }
    return sums.clone();
  }
}
