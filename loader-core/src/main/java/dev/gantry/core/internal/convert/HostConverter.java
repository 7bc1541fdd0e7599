// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.internal.threads.WorkerThreads;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/// Converts in host memory. For each block of elements with one scale, it makes the 256 possible results and
/// looks up each element's result in them.
final class HostConverter {
  /// How many elements a thread takes at once: enough to be worth a thread's start and a block's table.
  private static final long PIECE_ELEMENTS = 1 << 20;

  /// The number of adjacent blocks for which a thread has tables at once: as many as the L1 cache holds.
  private static final int STRIP_BLOCKS = 32;

  /// The fewest elements of a block for which a table is made; those of smaller blocks are computed one by one.
  private static final long LEAST_FOR_TABLE = Codes.COUNT;

  private static final ValueLayout.OfLong LONG =
      JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt CODES =
      JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfShort SHORT = JAVA_SHORT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT = JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);

  private HostConverter() {}

  /// Converts on as many threads as there are processors.
  ///
  /// @throws dev.gantry.core.TransferException if the caller cancels
  static void convert(List<Conversion.Task> tasks, Cancellation cancellation) {
    List<Piece> pieces = new ArrayList<>();
    tasks.forEach(task -> cut(task, pieces));
    WorkerThreads workers = new WorkerThreads("convert", "gantry-convert-", cancellation);
    if (pieces.size() > 1) {
      int threads = Runtime.getRuntime().availableProcessors();
      workers.forEach(threads, pieces, Piece::convert, () -> {});
    } else {
      workers.throwIfCancelled();
      pieces.forEach(Piece::convert);
    }
  }

  private static void cut(Conversion.Task task, List<Piece> pieces) {
    ScaleGrid grid = task.what().grid();
    long rows = grid.matrices() * grid.rows();
    long columnStep = Math.min(Math.max(1, grid.columns()), PIECE_ELEMENTS);
    long rowStep = PIECE_ELEMENTS / columnStep;
    // A piece has whole blocks, so that no block needs two tables.
    if (grid.blockRows() <= rowStep) {
      rowStep -= rowStep % grid.blockRows();
    }
    for (long row = 0; row < rows; row += rowStep) {
      long endRow = Math.min(rows, row + rowStep);
      for (long column = 0; column < grid.columns(); column += columnStep) {
        long endColumn = Math.min(grid.columns(), column + columnStep);
        pieces.add(new Piece(task, row, endRow, column, endColumn));
      }
    }
  }

  /// A part of a tensor. Its rows are counted through all matrices.
  private static final class Piece {
    private final Conversion what;
    private final ScaleGrid grid;
    private final long firstRow;
    private final long endRow;
    private final long firstColumn;
    private final long endColumn;
    private final MemorySegment source;
    private final MemorySegment scales;
    private final MemorySegment target;
    private final float[] values;

    Piece(Conversion.Task task, long firstRow, long endRow, long firstColumn, long endColumn) {
      this.what = task.what();
      this.grid = what.grid();
      this.firstRow = firstRow;
      this.endRow = endRow;
      this.firstColumn = firstColumn;
      this.endColumn = endColumn;
      this.source = memory(task.source(), what.sourceBytes());
      this.scales = memory(task.scales(), what.scaleBytes());
      this.target = memory(task.target(), what.targetBytes());
      this.values = Codes.values(what.from());
    }

    private static MemorySegment memory(long address, long bytes) {
      return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    void convert() {
      float[] factors = new float[STRIP_BLOCKS];
      int[] results = new int[STRIP_BLOCKS * Codes.COUNT];
      for (long row = firstRow; row < endRow; ) {
        long matrix = row / grid.rows();
        long start = matrix * grid.rows();
        long block = (row - start) / grid.blockRows();
        long end = start + Math.min(grid.rows(), (block + 1) * grid.blockRows());
        end = Math.min(end, endRow);
        long firstScale = (matrix * grid.scaleRows() + block) * grid.scaleColumns();
        for (long column = firstColumn; column < endColumn; ) {
          long firstBlock = column / grid.blockColumns();
          long next = Math.min(endColumn, (firstBlock + STRIP_BLOCKS) * grid.blockColumns());
          int blocks = (int) (Math.ceilDiv(next, grid.blockColumns()) - firstBlock);
          for (int i = 0; i < blocks; i++) {
            factors[i] = scale(firstScale + firstBlock + i);
          }
          strip(row, end, column, next, factors, results);
          column = next;
        }
        row = end;
      }
    }

    private float scale(long index) {
      return what.scaleType() == null ? 1 : Codes.scale(scales, what.scaleType(), index);
    }

    /// Converts adjacent blocks together, row by row, since memory is fast when it is read in order.
    private void strip(long row, long end, long column, long next, float[] factors, int[] results) {
      long firstBlock = column / grid.blockColumns();
      boolean table = (end - row) * Math.min(grid.blockColumns(), next - column) >= LEAST_FOR_TABLE;
      if (table) {
        int blocks = (int) (Math.ceilDiv(next, grid.blockColumns()) - firstBlock);
        for (int i = 0; i < blocks * Codes.COUNT; i++) {
          float value = values[i % Codes.COUNT] * factors[i / Codes.COUNT];
          results[i] = Codes.bits(what.to(), value);
        }
      }
      for (long one = row; one < end; one++) {
        long start = one * grid.columns();
        for (long from = column; from < next; ) {
          int block = (int) (from / grid.blockColumns() - firstBlock);
          long to = Math.min(next, (firstBlock + block + 1) * grid.blockColumns());
          if (!table) {
            compute(start + from, start + to, factors[block]);
          } else if (what.to() == DType.F32) {
            lookUpInts(start + from, start + to, results, block * Codes.COUNT);
          } else {
            lookUpShorts(start + from, start + to, results, block * Codes.COUNT);
          }
          from = to;
        }
      }
    }

    private void compute(long from, long end, float factor) {
      for (long at = from; at < end; at++) {
        int bits = Codes.bits(what.to(), values[source.get(JAVA_BYTE, at) & 0xFF] * factor);
        if (what.to() == DType.F32) {
          target.set(INT, at * Integer.BYTES, bits);
        } else {
          target.set(SHORT, at * Short.BYTES, (short) bits);
        }
      }
    }

    private void lookUpShorts(long from, long end, int[] results, int table) {
      long at = from;
      for (; at + Long.BYTES <= end; at += Long.BYTES) {
        long codes = source.get(LONG, at);
        long four = fourShorts(results, table, (int) codes);
        target.set(LONG, at * Short.BYTES, four);
        four = fourShorts(results, table, (int) (codes >>> 32));
        target.set(LONG, at * Short.BYTES + Long.BYTES, four);
      }
      for (; at < end; at++) {
        int result = results[table + (source.get(JAVA_BYTE, at) & 0xFF)];
        target.set(SHORT, at * Short.BYTES, (short) result);
      }
    }

    private static long fourShorts(int[] results, int table, int codes) {
      int low = results[table + (codes & 0xFF)] | (results[table + ((codes >>> 8) & 0xFF)] << 16);
      int high = results[table + ((codes >>> 16) & 0xFF)] | (results[table + (codes >>> 24)] << 16);
      return (low & 0xFFFFFFFFL) | ((long) high << 32);
    }

    private void lookUpInts(long from, long end, int[] results, int table) {
      long at = from;
      for (; at + Integer.BYTES <= end; at += Integer.BYTES) {
        int codes = source.get(CODES, at);
        long two = twoInts(results, table, codes);
        target.set(LONG, at * Integer.BYTES, two);
        two = twoInts(results, table, codes >>> 16);
        target.set(LONG, at * Integer.BYTES + Long.BYTES, two);
      }
      for (; at < end; at++) {
        target.set(INT, at * Integer.BYTES, results[table + (source.get(JAVA_BYTE, at) & 0xFF)]);
      }
    }

    private static long twoInts(int[] results, int table, int codes) {
      long first = results[table + (codes & 0xFF)] & 0xFFFFFFFFL;
      return first | ((long) results[table + ((codes >>> 8) & 0xFF)] << 32);
    }
  }
}
