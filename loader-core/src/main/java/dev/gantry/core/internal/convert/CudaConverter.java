// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.DType;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Locale;

/// Converts in the memory of a CUDA device, by the kernel of `convert.cu`. Thread-safe.
///
/// @param kernels holds the kernels
record CudaConverter(Converters kernels, CudaContext context) {
  // These numbers are the same in `convert.cu`.
  private static final int THREADS = 256;
  private static final int STORE_BYTES = 16;
  private static final int STEPS = 4;
  private static final int PARAMETER_BYTES =
      4 * Long.BYTES + 10 * Integer.BYTES + Codes.COUNT * Float.BYTES;

  /// The most blocks of a launch: more than run at once, so that the last ones end at the same time. This is
  /// the best of the numbers tried on an H200.
  private static final long MAX_BLOCKS = 8448;

  /// The most elements of one launch where there are several scales: the kernel counts elements in 32 bits then.
  private static final long MAX_ELEMENTS = Integer.MAX_VALUE;

  /// Returns the entry point of the kernel for results of this dtype.
  static String entry(DType to) {
    return "convert_to_" + to.name().toLowerCase(Locale.ROOT);
  }

  /// Converts after all work queued on the default stream, and returns when it is done.
  void convert(List<Conversion.Task> tasks) {
    try (var _ = context.enter();
        Arena arena = Arena.ofConfined()) {
      MemorySegment parameter = arena.allocate(PARAMETER_BYTES, Long.BYTES);
      try {
        tasks.forEach(task -> launch(task, parameter));
      } catch (RuntimeException | Error failure) {
        // Earlier launches must end first, since the caller frees the memory that they use.
        boolean _ = context.comesToRest();
        throw failure;
      }
      context.driver().synchronize(CudaDriver.Stream.DEFAULT);
    }
  }

  private void launch(Conversion.Task task, MemorySegment parameter) {
    ScaleGrid grid = task.what().grid();
    if (grid.elements() == 0) {
      return;
    }
    if (task.what().scaleType() == null || grid.scales() == 1) {
      launch(task, 0, grid.elements(), parameter);
      return;
    }
    long rows = grid.matrices() * grid.rows();
    long step = MAX_ELEMENTS / grid.columns();
    for (long row = 0; row < rows; row += step) {
      launch(task, row, Math.min(step, rows - row) * grid.columns(), parameter);
    }
  }

  /// @param row the first row, counted through all matrices; 0 unless there are several scales
  private void launch(Conversion.Task task, long row, long elements, MemorySegment parameter) {
    DType to = task.what().to();
    int bytes = to.bits() / Byte.SIZE;
    fill(parameter.asByteBuffer().order(ByteOrder.nativeOrder()), task, row, elements);
    // There is one more chunk, since stores are aligned, so the first may begin before the first
    // element.
    long chunks = Math.ceilDiv(elements * bytes, STORE_BYTES) + 1;
    long blocks = Math.min(MAX_BLOCKS, Math.ceilDiv(chunks, THREADS * STEPS));
    kernels
        .kernel(context, entry(to))
        .launch((int) blocks, THREADS, parameter, CudaDriver.Stream.DEFAULT);
  }

  /// Writes the kernel's parameter, `struct Conversion`.
  private static void fill(ByteBuffer parameter, Conversion.Task task, long row, long elements) {
    Conversion what = task.what();
    ScaleGrid grid = what.grid();
    long first = row * grid.columns();
    boolean several = what.scaleType() != null && grid.scales() > 1;
    parameter.putLong(task.source() + first);
    parameter.putLong(what.scaleType() == null ? 0 : task.scales());
    parameter.putLong(task.target() + first * (what.to().bits() / Byte.SIZE));
    parameter.putLong(elements);
    parameter.putInt(several ? 1 : 0);
    parameter.putInt((int) row);
    // These numbers may lose bits if there is only one scale, but the kernel does not read them
    // then.
    parameter.putInt((int) grid.rows());
    parameter.putInt((int) grid.columns());
    parameter.putInt((int) grid.blockRows());
    parameter.putInt((int) grid.blockColumns());
    parameter.putInt((int) grid.scaleRows());
    parameter.putInt((int) grid.scaleColumns());
    parameter.putInt(what.scaleType() == null ? 0 : Conversion.SCALES.indexOf(what.scaleType()));
    parameter.putInt(0);
    for (float value : Codes.values(what.from())) {
      parameter.putFloat(value);
    }
  }
}
