// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.checksum;

import dev.gantry.core.MisuseException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/// Computes the CRC32C of each block of a sequence of bytes, which is added in pieces of any size.
/// Not thread-safe.
public final class BlockChecksums {
  private final long length;
  private final long blockBytes;
  private final int[] sums;
  private long done;

  /// @param length the number of bytes in the whole sequence
  /// @param blockBytes the size of a block in bytes; the last block may be shorter
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
  /// @throws MisuseException if the piece goes past the end of the sequence
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

  /// Adds the next piece by its CRC32C and its length.
  ///
  /// @throws MisuseException if the piece goes past the end of its block, or of the sequence
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

  /// Returns the number of bytes that the current block still lacks.
  public long leftOfBlock() {
    return Math.min(length - done, blockBytes - done % blockBytes);
  }

  /// Returns the checksums, one for each block.
  ///
  /// @throws IllegalStateException if not all bytes have been added
  public int[] sums() {
    if (done < length) {
      throw new IllegalStateException("only " + done + " of " + length + " bytes were summed");
    }
    return sums.clone();
  }
}
