// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.internal.batch.Normalization;
import dev.gantry.core.internal.batch.NormalizedRows;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.CudaKernel;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/// Normalises samples on one device, by the kernel of `normalize.cu`. Samples may lie on the device, or in host
/// memory that the device can read. Thread-safe.
public final class CudaNormalizer {
  /// The kernel's entry point.
  static final String ENTRY = "normalize";

  // These numbers must be the same as in `normalize.cu`.
  private static final int THREADS = 256;
  private static final int STAGE_BYTES = 16 << 10;
  private static final int PIECE_BYTES = 3 * Long.BYTES;
  private static final int PARAMETER_BYTES =
      3 * Long.BYTES + 4 * Integer.BYTES + 2 * Normalization.MAX_CHANNELS * Float.BYTES;

  private CudaNormalizer() {}

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
  /// @param count the number of samples
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
  /// @param table the address of the pieces of `rows`, in pinned memory that stays allocated until
  ///     the kernel has run
  static void launch(CudaKernel kernel, NormalizedRows rows, long table, CudaDriver.Stream stream) {
    Normalization what = rows.what();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment parameter = arena.allocate(PARAMETER_BYTES, Long.BYTES);
      ByteBuffer fields = parameter.asByteBuffer().order(ByteOrder.nativeOrder());
      int pieces = Math.toIntExact(pieces(what, rows.rows()));
      fields.putLong(table).putLong(pieces).putLong(what.pixels());
      fields.putInt(what.channels()).putInt(what.channelsLast() ? 1 : 0);
      fields.putInt(Normalization.SOURCES.indexOf(what.from()));
      fields.putInt(Normalization.SOURCES.indexOf(what.to()));
      for (List<Float> factors : List.of(what.scale(), what.shift())) {
        for (int i = 0; i < Normalization.MAX_CHANNELS; i++) {
          fields.putFloat(i < what.channels() ? factors.get(i) : 0);
        }
      }
      kernel.launch(Math.min(pieces, CudaKernel.FETCHING_BLOCKS), THREADS, parameter, stream);
    }
  }
}
