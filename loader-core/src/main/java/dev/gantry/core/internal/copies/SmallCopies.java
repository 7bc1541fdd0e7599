// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.copies;

import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CopyPiece;
import dev.gantry.core.internal.natives.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Collects small copies from pinned memory, and has the kernel of `copies.cu` do many of them by
/// one launch. The driver takes 6 µs for a copy on an H200's host, whichever thread asks for it,
/// which is the time of 300 KB on the link. Only one thread may use an instance at a time.
final class SmallCopies {
  /// The most bytes of a small copy.
  static final long MAX_BYTES = 256 << 10;

  /// The same number is in `copies.cu`.
  private static final int MAX_PIECES = 170;

  /// The offset of the pieces in the kernel's parameter, which begins with their number.
  private static final int TABLE_OFFSET = Long.BYTES;

  /// A launch costs as much as one copy, and a kernel with few blocks fills no link.
  private static final int MIN_COPIES = 8;

  /// The most bytes that one thread block copies.
  private static final long PIECE_BYTES = 32 << 10;

  private final CudaContext context;
  private final CopyKernels.OfDevice kernel;

  // The copies that were taken and are not queued yet.
  private final long[] sources = new long[MAX_PIECES];
  private final long[] targets = new long[MAX_PIECES];
  private final long[] bytes = new long[MAX_PIECES];

  private int copies;

  /// How many pieces the copies have for the kernel.
  private int pieces;

  SmallCopies(CudaContext context, CopyKernels kernels) {
    this.context = context;
    this.kernel = kernels.of(context);
  }

  /// Takes a copy. Queues the copies that were taken before if the kernel's parameter has no place
  /// for this one.
  ///
  /// @return false if the caller has to queue this copy itself
  boolean take(long target, long source, long size, CudaDriver.Stream stream) {
    if (size > MAX_BYTES || !kernel.isReady()) {
      return false;
    }
    int needed = (int) Math.ceilDiv(size, PIECE_BYTES);
    if (pieces + needed > MAX_PIECES) {
      queue(stream);
    }
    sources[copies] = source;
    targets[copies] = target;
    bytes[copies] = size;
    copies++;
    pieces += needed;
    return true;
  }

  /// Queues the copies that were taken. If this fails, the next call queues all of them again: a
  /// read that counts as arrived when its queue is closed must not lack bytes.
  void queue(CudaDriver.Stream stream) {
    if (copies == 0) {
      return;
    }
    try (var _ = context.enter()) {
      if (copies >= MIN_COPIES) {
        launch(stream);
      } else {
        for (int i = 0; i < copies; i++) {
          context.driver().copyToDevice(targets[i], sources[i], bytes[i], stream);
        }
      }
    }
    copies = 0;
    pieces = 0;
  }

  private void launch(CudaDriver.Stream stream) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment parameter =
          arena.allocate(TABLE_OFFSET + MAX_PIECES * CopyPiece.BYTES, Long.BYTES);
      parameter.set(ValueLayout.JAVA_LONG, 0, pieces);
      MemorySegment table = parameter.asSlice(TABLE_OFFSET);
      long index = 0;
      for (int i = 0; i < copies; i++) {
        index = CopyPiece.write(table, index, sources[i], targets[i], bytes[i], PIECE_BYTES);
      }
      kernel.launch(parameter, pieces, stream);
    }
  }
}
