// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static dev.gantry.core.internal.plan.PlanLimits.BLOCK_BYTES;
import static dev.gantry.core.internal.plan.PlanLimits.ceiling;
import static dev.gantry.core.internal.plan.PlanLimits.floor;

import dev.gantry.core.Memory;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Target.Piece;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.Copy2D;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// `host`: reads into memory of the caller, at any address. Reads through the page cache need no alignment. Direct
/// reads need whole blocks: what does not lie on blocks goes through a buffer. For one thread.
final class HostScatter implements AutoCloseable {
  /// If the pieces of a read are shorter than this on average, one read brings them all, and they are copied out of it:
  /// a copy costs less than a system call.
  private static final long SHORT_BYTES = 32 << 10;

  private @Nullable HostSlab bounce;

  /// @param direct whether to go past the page cache
  /// @return whether the bytes went past the page cache
  boolean read(SourceFile file, Read read, List<Piece> pieces, boolean direct) {
    Piece first = pieces.getFirst();
    boolean isShort =
        pieces.size() > 1
            && pieces.stream().mapToLong(piece -> piece.rows().bytes()).sum() / pieces.size()
                < SHORT_BYTES;
    if (isShort || !pieces.stream().allMatch(HostScatter::isOneRow)) {
      return throughBuffer(file, read, pieces, direct);
    }
    if (!direct) {
      for (Piece piece : pieces) {
        long offset = read.fileOffset() + piece.rows().source();
        boolean _ = file.read(row(piece), offset, piece.rows().width(), false);
      }
      return false;
    }
    if (pieces.size() == 1 && liesOnBlocks(first)) {
      return onBlocks(file, read, first);
    }
    return throughBuffer(file, read, pieces, true);
  }

  /// Whether the kernel can read a piece directly into its memory.
  static boolean isOneRow(Piece piece) {
    return piece.rows().rows() == 1 && segment(piece).isNative();
  }

  /// The memory of a piece of one row.
  static MemorySegment row(Piece piece) {
    return segment(piece).asSlice(piece.rows().target(), piece.rows().width());
  }

  private static MemorySegment segment(Piece piece) {
    return switch (piece.memory()) {
      case Memory.OnHost(MemorySegment segment) -> segment;
      case Memory.OnDevice device ->
          throw new IllegalStateException(
              "transport host cannot fill memory of " + device.device());
    };
  }

  private static boolean liesOnBlocks(Piece piece) {
    Copy2D rows = piece.rows();
    long start = ceiling(rows.source());
    return floor(rows.sourceEnd()) - start >= SHORT_BYTES
        && (row(piece).address() + start - rows.source()) % BLOCK_BYTES == 0;
  }

  /// Reads whole blocks into their place, and the blocks at both ends through the buffer.
  private boolean onBlocks(SourceFile file, Read read, Piece piece) {
    Copy2D rows = piece.rows();
    long start = ceiling(rows.source());
    long end = floor(rows.sourceEnd());
    boolean direct =
        file.read(
            row(piece).asSlice(start - rows.source(), end - start),
            read.fileOffset() + start,
            end - start,
            true);
    if (rows.source() < start) {
      direct &= edge(file, read, piece, start - BLOCK_BYTES);
    }
    if (end < rows.sourceEnd()) {
      direct &= edge(file, read, piece, end);
    }
    return direct;
  }

  /// @param block where the block begins, in bytes from the read's start
  private boolean edge(SourceFile file, Read read, Piece piece, long block) {
    Copy2D rows = piece.rows();
    MemorySegment buffer = buffer(BLOCK_BYTES);
    long required = Math.min(BLOCK_BYTES, read.required() - block);
    boolean direct = file.read(buffer, read.fileOffset() + block, required, true);
    long from = Math.max(block, rows.source());
    long bytes = Math.min(block + BLOCK_BYTES, rows.sourceEnd()) - from;
    row(piece).asSlice(from - rows.source(), bytes).copyFrom(buffer.asSlice(from - block, bytes));
    return direct;
  }

  private boolean throughBuffer(SourceFile file, Read read, List<Piece> pieces, boolean direct) {
    MemorySegment buffer = buffer(read.length());
    boolean went = file.read(buffer, read.fileOffset(), read.required(), direct);
    scatter(buffer, pieces);
    return went;
  }

  /// @param bytes the bytes of the read
  static void scatter(MemorySegment bytes, List<Piece> pieces) {
    pieces.forEach(piece -> piece.rows().run(bytes, segment(piece)));
  }

  private MemorySegment buffer(long bytes) {
    HostSlab slab = bounce;
    if (slab == null || slab.size() < bytes) {
      close();
      slab = HostSlab.allocate(bytes);
      bounce = slab;
    }
    return slab.segment().asSlice(0, bytes);
  }

  @Override
  public void close() {
    HostSlab slab = bounce;
    bounce = null;
    if (slab != null) {
      slab.release();
    }
  }
}
