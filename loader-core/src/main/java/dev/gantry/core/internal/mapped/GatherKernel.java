// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CopyPiece;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.CudaKernel;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// The kernel of `gather.cu` on one device. Thread-safe.
final class GatherKernel implements AutoCloseable {
  /// If pieces are shorter than this on average, the kernel gets twice as many thread blocks,
  /// because a block has fewer bytes of short pieces in flight: samples of 4 KiB reached 41 GB/s
  /// on an H200 with 264 blocks, and 39 with 128.
  private static final long SHORT_BYTES = 16 << 10;

  private final CudaKernel kernel;

  /// Has the driver compile the kernel.
  GatherKernel(CudaContext context) {
    this.kernel = CudaKernel.load(context.open(), GatherKernel.class, "gather");
  }

  /// Queues the kernel on a stream. The device's context must be current.
  ///
  /// @param table the address of the table of pieces, in pinned memory that stays allocated until
  ///     the kernel has run
  /// @param bytes the bytes of all pieces together
  void launch(long table, int pieces, long bytes, CudaDriver.Stream stream) {
    int most = CudaKernel.FETCHING_BLOCKS * (bytes / pieces < SHORT_BYTES ? 2 : 1);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment parameter = arena.allocateFrom(ValueLayout.JAVA_LONG, table, pieces);
      kernel.launch(Math.min(pieces, most), CopyPiece.THREADS, parameter, stream);
    }
  }

  @Override
  public void close() {
    kernel.unload();
  }
}
