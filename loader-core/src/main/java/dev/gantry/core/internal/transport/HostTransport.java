// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static dev.gantry.core.internal.plan.PlanLimits.BLOCK_BYTES;

import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.memory.Target.Piece;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.Copy2D;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// `host`: reads into host memory. Slabs are filled in whole blocks. Memory of the caller may be
/// at any address: reads through the page cache need no alignment, and direct reads that are not
/// whole blocks at aligned addresses go through a buffer. Only one thread may use an instance.
final class HostTransport implements AutoCloseable {
  /// If the pieces of a read are shorter than this on average, one system call reads all of them
  /// into a buffer, from which they are copied: a copy of this size takes less time than a system
  /// call.
  private static final long SHORT_BYTES = 32 << 10;

  private final @Nullable KnownChecksums sums;
  private @Nullable HostSlab bounce;

  /// @param sums adds the bytes that are read to checksums; null if no checksums are wanted
  HostTransport(@Nullable KnownChecksums sums) {
    this.sums = sums;
  }

  /// @param direct whether to go past the page cache
  /// @return whether the bytes went past the page cache
  boolean read(SourceFile file, Read read, Target target, boolean direct) {
    return switch (target) {
      case Target.InSlab in -> read(file, read, place(read, in), direct, sums);
      case Target.OnEach _ -> throw new IllegalStateException("what several devices get is staged");
      case Target.Scattered(var pieces) -> {
        boolean went = read(file, read, pieces, direct);
        sum(read, target);
        yield went;
      }
    };
  }

  /// Reads into memory of the read's length. If checksums are wanted, a read through the page
  /// cache is done in steps, so that the bytes of a step are still in the processor's cache when
  /// they are added to the checksum.
  static boolean read(
      SourceFile file,
      Read read,
      MemorySegment place,
      boolean direct,
      @Nullable KnownChecksums sums) {
    if (sums == null) {
      return file.read(place, read.fileOffset(), read.required(), direct);
    }
    boolean inSteps = !direct && file.isLocal();
    long step = inSteps ? KnownChecksums.STEP_BYTES : read.length();
    boolean went = true;
    for (long done = 0; done < read.required(); done += step) {
      long required = Math.min(step, read.required() - done);
      MemorySegment part = place.asSlice(done, Math.min(step, read.length() - done));
      went &= file.read(part, read.fileOffset() + done, required, direct);
      sums.add(read.file(), read.fileOffset() + done, part.asSlice(0, required));
    }
    return went;
  }

  /// Adds the bytes of a read to the checksums, from the memory that the read filled.
  void sum(Read read, Target target) {
    KnownChecksums sums = this.sums;
    if (sums == null) {
      return;
    }
    switch (target) {
      case Target.InSlab in ->
          sums.add(read.file(), read.fileOffset(), place(read, in).asSlice(0, read.required()));
      case Target.OnEach _ -> throw new IllegalStateException("what several devices get is staged");
      // A checksum covers a whole tensor. A piece of several rows has only a part of a tensor, so
      // it is left out.
      case Target.Scattered(var pieces) ->
          pieces.stream()
              .filter(piece -> piece.rows().rows() == 1)
              .forEach(piece ->
                  sums.add(read.file(), read.fileOffset() + piece.rows().source(), row(piece)));
    }
  }

  /// The memory that a read fills.
  static MemorySegment place(Read read, Target.InSlab target) {
    if (!(target.slab() instanceof HostSlab slab)) {
      throw new MisuseException("transport host cannot fill memory of " + target.slab().device());
    }
    return slab.segment().asSlice(read.slabOffset(), read.length());
  }

  private boolean read(SourceFile file, Read read, List<Piece> pieces, boolean direct) {
    Piece first = pieces.getFirst();
    boolean isShort =
        pieces.size() > 1
            && pieces.stream().mapToLong(piece -> piece.rows().bytes()).sum() / pieces.size()
                < SHORT_BYTES;
    if (isShort || !pieces.stream().allMatch(HostTransport::isOneRow)) {
      return throughBuffer(file, read, pieces, direct);
    }
    if (!direct) {
      for (Piece piece : pieces) {
        long offset = read.fileOffset() + piece.rows().source();
        boolean _ = file.read(row(piece), offset, piece.rows().width(), false);
      }
      return false;
    }
    if (pieces.size() == 1 && isOnBlocks(first)) {
      return file.read(row(first), read.fileOffset(), first.rows().width(), true);
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

  /// Whether a piece begins where the read begins and is whole blocks at an aligned address, as
  /// direct reads need.
  private static boolean isOnBlocks(Piece piece) {
    Copy2D rows = piece.rows();
    return rows.source() == 0 && (rows.width() | row(piece).address()) % BLOCK_BYTES == 0;
  }

  private boolean throughBuffer(SourceFile file, Read read, List<Piece> pieces, boolean direct) {
    MemorySegment buffer = buffer(read.length());
    boolean went = file.read(buffer, read.fileOffset(), read.required(), direct);
    scatter(buffer, pieces);
    return went;
  }

  /// @param bytes the bytes of the whole read
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
