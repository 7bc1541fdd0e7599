// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.internal.checksum.BlockChecksums;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.copies.CopyQueue;
import dev.gantry.core.internal.copies.StagingPool;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.core.spi.Residency;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/// Reads the bytes of a source in order on the CPU. A device copies into one pinned buffer while the calling
/// thread reads the other. Thread-safe.
public final class SourceReading {
  private static final long STEP_BYTES = PlanLimits.DEFAULT.requestBytes();

  private final TransferEngine engine;

  public SourceReading(TransferEngine engine) {
    this.engine = engine;
  }

  /// Returns the CRC32C of all bytes.
  public int checksum(Source source) {
    return source.length() == 0 ? Crc32c.OF_NOTHING : checksums(source, source.length())[0];
  }

  /// Returns the CRC32C of each block; the last block may be shorter.
  public int[] checksums(Source source, long blockBytes) {
    BlockChecksums sums = new BlockChecksums(source.length(), blockBytes);
    inOrder(source, sums::add);
    return sums.sums();
  }

  /// Returns the CRC32C of each of some ranges of files, which several threads read.
  public int[] checksums(List<Extent> extents) {
    return new FileSums(engine).of(extents);
  }

  /// Copies all bytes to host memory.
  ///
  /// @param target memory of the source's length or more
  public void copy(Source source, MemorySegment target) {
    long[] done = {0};
    inOrder(
        source,
        piece -> {
          target.asSlice(done[0], piece.byteSize()).copyFrom(piece);
          done[0] += piece.byteSize();
        });
  }

  /// Calls `taker` with all bytes in order.
  ///
  /// @param taker receives the bytes piece by piece; a piece is valid only during the call
  private void inOrder(Source source, Consumer<MemorySegment> taker) {
    switch (source) {
      case Memory.OnHost(MemorySegment segment) -> taker.accept(segment);
      case Memory.OnDevice memory -> ofDevice(memory, taker);
      case Source.FilePart(var extent) -> {
        try (SourceFile file = engine.openFile(extent.file(), CachePolicy.BY_RESIDENCY)) {
          ofFile(file, extent.offset(), extent.length(), taker);
        }
      }
    }
  }

  static void ofFile(SourceFile file, long offset, long length, Consumer<MemorySegment> taker) {
    HostSlab slab = HostSlab.allocate(Math.clamp(length, 1, STEP_BYTES));
    try {
      long end = offset + length;
      for (long at = offset; at < end; ) {
        long next = Math.min(end, at + STEP_BYTES);
        boolean direct = file.residency(at, next - at) != Residency.HOT;
        // Bytes from the page cache are read in smaller steps, so that they are still in the
        // processor's cache when `taker` uses them.
        long most = direct ? STEP_BYTES : KnownChecksums.STEP_BYTES;
        while (at < next) {
          long step = Math.min(most, next - at);
          MemorySegment bytes = slab.segment().asSlice(0, step);
          boolean _ = file.read(bytes, at, step, direct);
          taker.accept(bytes);
          at += step;
        }
      }
    } finally {
      slab.release();
    }
  }

  private void ofDevice(Memory.OnDevice memory, Consumer<MemorySegment> taker) {
    // The copies use a stream of their own, so work that is queued on other streams must end first.
    CudaContext.of(memory.device()).synchronize();
    ofDevice(memory, engine.stagingPool(memory.device()).share(), () -> true, taker);
  }

  /// Calls `taker` with the bytes of a device's memory in order. Does not wait for work that is
  /// queued on the device.
  ///
  /// @param wanted asked while this waits for buffers; if it returns false, `taker` is not called
  static void ofDevice(
      Memory.OnDevice memory,
      StagingPool.Share buffers,
      BooleanSupplier wanted,
      Consumer<MemorySegment> taker) {
    CudaContext context = CudaContext.of(memory.device());
    buffers.use(STEP_BYTES, wanted, context, pair -> ofDevice(memory, taker, context, pair));
  }

  private static void ofDevice(
      Memory.OnDevice memory,
      Consumer<MemorySegment> taker,
      CudaContext context,
      StagingPool.Pair pair) {
    try (CopyQueue queue = new CopyQueue(context)) {
      fetch(memory, 0, pair, queue);
      for (long done = 0; done < memory.length(); done += STEP_BYTES) {
        fetch(memory, done + STEP_BYTES, pair, queue);
        int turn = turn(done);
        queue.await(turn);
        long step = Math.min(STEP_BYTES, memory.length() - done);
        taker.accept(buffer(pair, turn).segment().asSlice(0, step));
      }
    }
  }

  private static void fetch(
      Memory.OnDevice memory, long from, StagingPool.Pair pair, CopyQueue queue) {
    if (from < memory.length()) {
      int turn = turn(from);
      long step = Math.min(STEP_BYTES, memory.length() - from);
      queue.copyToHost(buffer(pair, turn).address(), memory.address() + from, step);
      queue.record(turn);
    }
  }

  private static int turn(long offset) {
    return (int) (offset / STEP_BYTES % 2);
  }

  private static PinnedSlab buffer(StagingPool.Pair pair, int turn) {
    return turn == 0 ? pair.first() : pair.second();
  }
}
