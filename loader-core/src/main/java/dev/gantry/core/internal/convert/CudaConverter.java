// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.internal.convert.FormulaPtx.Parameter;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.CudaKernel;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/// Computes formulas in the memory of a CUDA device, by kernels that [FormulaPtx] writes. Thread-safe.
///
/// @param kernels holds the kernels
record CudaConverter(Converters kernels, CudaContext context) {
  private static final int STORE_BYTES = 16;

  /// The binary logarithm of the width of a tile of threads, if a tensor has several rows. In a
  /// tile, threads that are adjacent in both directions read the same bytes.
  private static final int TILE_SHIFT = 3;

  /// The most tiles of a launch.
  private static final long MAX_TILES = Integer.MAX_VALUE;

  /// Converts after all work queued on the default stream, and returns when it is done.
  void convert(List<Dequantisation.Task> tasks) {
    try (var _ = context.enter();
        Arena arena = Arena.ofConfined()) {
      MemorySegment parameter = arena.allocate(Parameter.BYTES, Long.BYTES);
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

  private void launch(Dequantisation.Task task, MemorySegment parameter) {
    Dequantisation what = task.what();
    Dequantisation.Indexes size = what.box().size();
    if (what.box().elements() == 0) {
      return;
    }
    int shift = size.row() == 1 ? Integer.numberOfTrailingZeros(FormulaPtx.THREADS) : TILE_SHIFT;
    long groups = columnGroups(what.box());
    long columnTiles = Math.ceilDiv(groups, 1 << shift);
    long rowTiles = Math.ceilDiv(size.row(), FormulaPtx.THREADS >> shift);
    CudaKernel kernel = kernels.kernel(context, what.tape(), what.to());
    // A launch computes as many matrices as the limit of its tiles allows.
    long step = Math.max(1, MAX_TILES / (columnTiles * rowTiles));
    for (long matrix = 0; matrix < size.matrix(); matrix += step) {
      long matrices = Math.min(step, size.matrix() - matrix);
      fill(parameter, task, matrix, columnTiles, rowTiles, shift);
      long blocks = columnTiles * rowTiles * matrices;
      kernel.launch(
          Math.toIntExact(blocks), FormulaPtx.THREADS, parameter, CudaDriver.Stream.DEFAULT);
    }
  }

  /// Returns the number of groups of columns. A thread computes one group of a row; groups begin
  /// at multiples of their size.
  private static long columnGroups(Dequantisation.Box box) {
    long first = box.first().column();
    return (first + box.size().column() - 1) / FormulaPtx.COLUMNS - first / FormulaPtx.COLUMNS + 1;
  }

  private static void fill(
      MemorySegment parameter,
      Dequantisation.Task task,
      long matrix,
      long columnTiles,
      long rowTiles,
      int shift) {
    Dequantisation what = task.what();
    Dequantisation.Indexes first = what.box().first();
    Dequantisation.Indexes size = what.box().size();
    int bytes = what.to().bits() / Byte.SIZE;
    long target = task.target() + matrix * size.row() * size.column() * bytes;
    set(parameter, Parameter.TARGET, target);
    for (int i = 0; i < task.sources().size(); i++) {
      Dequantisation.Input input = what.inputs().get(i);
      int at = Parameter.INPUTS + i * Parameter.INPUT_BYTES;
      set(parameter, at, task.sources().get(i) - input.start());
      for (int axis = 0; axis < Dequantisation.MAX_AXES; axis++) {
        set(parameter, at + (1 + axis) * Long.BYTES, input.stride(axis));
      }
    }
    setInt(parameter, Parameter.MATRIX, first.matrix() + matrix);
    setInt(parameter, Parameter.ROW, first.row());
    setInt(parameter, Parameter.COLUMN, first.column());
    setInt(parameter, Parameter.ROWS, size.row());
    setInt(parameter, Parameter.COLUMNS, size.column());
    setInt(parameter, Parameter.COLUMN_TILES, columnTiles);
    setInt(parameter, Parameter.ROW_TILES, rowTiles);
    setInt(parameter, Parameter.TILE_SHIFT, shift);
    boolean whole =
        target % STORE_BYTES == 0
            && first.column() % FormulaPtx.COLUMNS == 0
            && (size.column() % FormulaPtx.COLUMNS == 0 || size.row() * size.matrix() == 1);
    setInt(parameter, Parameter.WHOLE_STORES, whole ? 1 : 0);
    for (int i = 0; i < what.parameters().size(); i++) {
      setInt(parameter, Parameter.NUMBERS + i * Integer.BYTES, what.parameters().get(i));
    }
  }

  private static void set(MemorySegment parameter, int offset, long value) {
    parameter.set(ValueLayout.JAVA_LONG, offset, value);
  }

  private static void setInt(MemorySegment parameter, int offset, long value) {
    parameter.set(ValueLayout.JAVA_INT, offset, (int) value);
  }
}
