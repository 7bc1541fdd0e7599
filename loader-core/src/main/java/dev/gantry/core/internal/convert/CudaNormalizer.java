// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.internal.batch.Normalization;
import dev.gantry.core.internal.batch.NormalizedRows;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.CudaKernel;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Normalises samples on one device, by the kernel of `normalize.cu`. Samples may lie on the device, or in host
/// memory that the device can read. Thread-safe.
public final class CudaNormalizer implements AutoCloseable {
  // These numbers are the same in `normalize.cu`.
  private static final int THREADS = 256;
  private static final int STAGE_BYTES = 16 << 10;
  private static final int PIECE_BYTES = 3 * Long.BYTES;
  private static final int PARAMETER_BYTES =
      2 * Long.BYTES + 4 * Integer.BYTES + 2 * Normalization.MAX_CHANNELS * Float.BYTES;

  private final CudaContext context;
  private final CudaKernel kernel;

  /// Has the driver compile the kernel.
  CudaNormalizer(CudaContext context) {
    this.context = context;
    try (var _ = context.enter()) {
      this.kernel = CudaKernel.load(CudaNormalizer.class, "normalize");
    }
  }

  /// Returns how many pixels (channels-last) or elements of a sample one thread block computes.
  private static long unitsPerPiece(Normalization what) {
    return STAGE_BYTES / unitBytes(what);
  }

  private static long unitBytes(Normalization what) {
    return what.from().alignmentBytes() * (what.channelsLast() ? (long) what.channels() : 1);
  }

  private static long units(Normalization what) {
    return what.channelsLast() ? what.pixels() : what.elements();
  }

  private static long pieces(Normalization what, long rows) {
    return rows * Math.ceilDiv(units(what), unitsPerPiece(what));
  }

  /// Returns the bytes of the kernel's table of pieces.
  ///
  /// @param rows how many samples there are
  public static long tableBytes(Normalization what, long rows) {
    return pieces(what, rows) * PIECE_BYTES;
  }

  /// Writes the pieces of some samples to the kernel's table.
  ///
  /// @param at the offset in `table` where these pieces begin
  /// @param source the address of the first of these samples
  /// @param pitch bytes from one sample's start to the next one's
  /// @param target the address of the first of their results
  /// @param count how many samples they are
  /// @return the offset in `table` where these pieces end
  public static long write(
      MemorySegment table,
      long at,
      Normalization what,
      long source,
      long pitch,
      long target,
      long count) {
    long most = unitsPerPiece(what);
    long units = units(what);
    long unitBytes = unitBytes(what);
    long end = at;
    for (long row = 0; row < count; row++) {
      for (long unit = 0; unit < units; unit += most) {
        table.set(ValueLayout.JAVA_LONG, end, source + row * pitch + unit * unitBytes);
        table.set(ValueLayout.JAVA_LONG, end + Long.BYTES, target + row * what.toBytes());
        table.set(ValueLayout.JAVA_INT, end + 2 * Long.BYTES, (int) unit);
        table.set(
            ValueLayout.JAVA_INT,
            end + 2 * Long.BYTES + Integer.BYTES,
            (int) Math.min(most, units - unit));
        end += PIECE_BYTES;
      }
    }
    return end;
  }

  /// Queues the kernel on a stream. The device's context must be current.
  ///
  /// @param table the address of all pieces of `rows`, in pinned memory that stays until the kernel has run
  public void launch(NormalizedRows rows, long table, CudaDriver.Stream stream) {
    Normalization what = rows.what();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment parameter = arena.allocate(PARAMETER_BYTES, Long.BYTES);
      parameter.set(ValueLayout.JAVA_LONG, 0, table);
      parameter.set(ValueLayout.JAVA_LONG, Long.BYTES, what.pixels());
      long numbers = 2L * Long.BYTES / Integer.BYTES;
      parameter.setAtIndex(ValueLayout.JAVA_INT, numbers, what.channels());
      parameter.setAtIndex(ValueLayout.JAVA_INT, numbers + 1, what.channelsLast() ? 1 : 0);
      parameter.setAtIndex(
          ValueLayout.JAVA_INT, numbers + 2, Normalization.SOURCES.indexOf(what.from()));
      parameter.setAtIndex(
          ValueLayout.JAVA_INT, numbers + 3, Normalization.SOURCES.indexOf(what.to()));
      for (int i = 0; i < what.channels(); i++) {
        long at = numbers + 4 + i;
        parameter.setAtIndex(ValueLayout.JAVA_FLOAT, at, what.scale().get(i));
        parameter.setAtIndex(
            ValueLayout.JAVA_FLOAT, at + Normalization.MAX_CHANNELS, what.shift().get(i));
      }
      kernel.launch(Math.toIntExact(pieces(what, rows.rows())), THREADS, parameter, stream);
    }
  }

  @Override
  public void close() {
    try (var _ = context.enter()) {
      kernel.unload();
    }
  }
}
