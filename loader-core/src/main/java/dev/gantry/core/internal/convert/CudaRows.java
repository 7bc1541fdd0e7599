// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/// Queues what a transformer's layer does to rows beside its products, by the kernel of `rows.cu`, on the device's default
/// stream. All arrays are dense and of one type. Thread-safe.
public final class CudaRows {
  /// The types that the kernel knows, by their numbers there.
  private static final List<DType> TYPES = List.of(DType.F32, DType.F16, DType.BF16);

  /// The kernel's entry point.
  private static final String ENTRY = "rows";

  private static final int THREADS = 256;
  private static final int PARAMETER_BYTES = 5 * Long.BYTES + 6 * Integer.BYTES;

  /// Holds the kernels of all devices until the process ends, as libtorch holds its own: arrays outlive sessions.
  private static final Converters KERNELS = new Converters();

  private final CudaContext context;

  private CudaRows(CudaContext context) {
    this.context = context;
  }

  /// Returns what computes on rows of arrays on a device.
  ///
  /// @throws DeviceUnavailableException if there is no such device
  public static CudaRows of(Device.Cuda device) {
    return new CudaRows(CudaContext.of(device));
  }

  /// Whether the kernel knows a type.
  public static boolean knows(DType type) {
    return TYPES.contains(type);
  }

  /// Says where the rows of an operation are.
  ///
  /// @param x the address of the rows
  /// @param out the address of the results, of the same size
  /// @param rows how many there are
  /// @param width of a row, in elements
  public record Rows(long x, long out, long rows, int width, DType type) {}

  /// RMSNorm of each row: `x / √(mean(x²) + epsilon) · scale`.
  ///
  /// @param scale the address of a row
  /// @param plusOne whether that is one less than the scale
  public void norm(Rows rows, long scale, double epsilon, boolean plusOne) {
    launch(rows, 0, rows.rows(), scale, 0, plusOne ? 1 : 0, 0, (float) epsilon);
  }

  /// Turns pairs of a row's first half and second by the angles of its token.
  ///
  /// @param cosines the address of `angles` rows of `half` elements, as `sines`; the token after the last of them has the
  ///     first again
  /// @param half how many pairs are turned; elements behind them stay as they are
  /// @param heads rows of one token
  public void turn(Rows rows, long cosines, long sines, int angles, int half, int heads) {
    launch(rows, 1, blocks(rows), cosines, sines, half, heads, angles);
  }

  /// `silu(x) · by`, element by element.
  ///
  /// @param by the address of as many rows
  public void gate(Rows rows, long by) {
    launch(rows, 2, blocks(rows), by, 0, 0, 0, 0);
  }

  private static long blocks(Rows rows) {
    return Math.ceilDiv(Math.multiplyExact(rows.rows(), rows.width()), THREADS);
  }

  private void launch(
      Rows rows, int kind, long blocks, long a, long b, int first, int second, float number) {
    if (blocks == 0) {
      return;
    }
    try (var _ = context.enter();
        Arena arena = Arena.ofConfined()) {
      MemorySegment parameter = arena.allocate(PARAMETER_BYTES, Long.BYTES);
      ByteBuffer fields = parameter.asByteBuffer().order(ByteOrder.nativeOrder());
      fields.putLong(rows.x()).putLong(a).putLong(b).putLong(rows.out()).putLong(rows.rows());
      fields.putInt(rows.width()).putInt(kind).putInt(TYPES.indexOf(rows.type()));
      fields.putInt(first).putInt(second).putFloat(number);
      KERNELS
          .kernel(context, ENTRY)
          .launch(Math.toIntExact(blocks), THREADS, parameter, CudaDriver.Stream.DEFAULT);
    }
  }
}
