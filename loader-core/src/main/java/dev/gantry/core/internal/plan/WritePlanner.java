// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import dev.gantry.core.internal.plan.WritePlan.Piece;
import dev.gantry.core.internal.plan.WritePlan.Write;
import java.util.ArrayList;
import java.util.List;

/// Makes a [WritePlan]: the parts are laid end to end and cut into requests that begin on blocks.
///
/// Writes cannot be aligned outward as reads are, since the blocks at a part's edges hold bytes of
/// its neighbours: such a block is assembled from the bytes of all parts that it holds. Pure;
/// thread-safe.
public final class WritePlanner {
  private WritePlanner() {}

  /// @param parts the lengths of the parts in bytes, in the order of the file; their sum fits a
  ///     `long`
  /// @param requestBytes the longest write, a multiple of [PlanLimits#BLOCK_BYTES]
  public static WritePlan plan(List<Long> parts, long requestBytes) {
    PlanLimits.checkRequestBytes(requestBytes);
    List<Write> writes = new ArrayList<>();
    List<Piece> pieces = new ArrayList<>();
    long offset = 0;
    long filled = 0;
    for (int part = 0; part < parts.size(); part++) {
      long length = parts.get(part);
      for (long done = 0; done < length; ) {
        long bytes = Math.min(length - done, requestBytes - filled);
        pieces.add(new Piece(part, done, filled, bytes));
        done += bytes;
        filled += bytes;
        if (filled == requestBytes) {
          writes.add(new Write(offset, filled, pieces));
          offset += filled;
          filled = 0;
          pieces.clear();
        }
      }
    }
    if (filled > 0) {
      writes.add(new Write(offset, filled, pieces));
    }
    return new WritePlan(offset + filled, writes);
  }
}
