// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import java.util.List;

/// The aligned writes that assemble one file from its parts.
///
/// @param size the file's size in bytes, to which it is trimmed at the end
/// @param writes the writes in the file's order; they do not overlap, and no block is in two of them
public record WritePlan(long size, List<Write> writes) {
  public WritePlan {
    writes = List.copyOf(writes);
  }

  /// One aligned write.
  ///
  /// @param offset where the write begins in the file, a multiple of [PlanLimits#BLOCK_BYTES]
  /// @param length bytes of the file in this write. The last write of a file may have a length that is no multiple of
  ///     [PlanLimits#BLOCK_BYTES]; it is padded with zeros
  /// @param pieces the pieces that the write consists of, in order and without gaps
  public record Write(long offset, long length, List<Piece> pieces) {
    public Write {
      pieces = List.copyOf(pieces);
    }

    /// The length with padding: a multiple of [PlanLimits#BLOCK_BYTES].
    public long paddedLength() {
      return PlanLimits.ceiling(length);
    }
  }

  /// Bytes of one part within a write.
  ///
  /// @param part an index into the file's parts
  /// @param partOffset bytes from the part's start
  /// @param offset bytes from the write's start
  public record Piece(int part, long partOffset, long offset, long length) {}

  /// The size with the last block's padding, which is allocated on the disk.
  public long paddedSize() {
    return PlanLimits.ceiling(size);
  }
}
