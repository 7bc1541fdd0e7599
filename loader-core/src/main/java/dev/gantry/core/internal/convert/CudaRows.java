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

/// Queues the operations of a transformer's layer on rows that are not matrix products (norms,
/// rotary position embedding, gates), by the kernel of `rows.cu`, on the device's default stream.
/// All arrays are dense and of one type. Thread-safe.
public final class CudaRows {
  /// The types that the kernel supports; their indices are their numbers in the kernel.
  private static final List<DType> TYPES = List.of(DType.F32, DType.F16, DType.BF16);

  /// The kernel's entry point.
  private static final String ENTRY = "rows";

  private static final int THREADS = 256;
  private static final int PARAMETER_BYTES = 5 * Long.BYTES + 6 * Integer.BYTES;

  /// The kernels of all devices, which stay loaded until the process ends, since arrays outlive
  /// sessions.
  private static final Converters KERNELS = new Converters();

  private final CudaContext context;

  private CudaRows(CudaContext context) {
    this.context = context;
  }

  /// Returns the operations on a device.
  ///
  /// @throws DeviceUnavailableException if there is no such device
  public static CudaRows of(Device.Cuda device) {
    return new CudaRows(CudaContext.of(device));
  }

  /// Whether the kernel supports a type.
  public static boolean knows(DType type) {
    return TYPES.contains(type);
  }

  /// The memory of an operation's rows.
  ///
  /// @param x the address of the rows
  /// @param out the address of the results, of the same size
  /// @param rows the number of rows
  /// @param width the elements of a row
  public record Rows(long x, long out, long rows, int width, DType type) {}

  /// RMSNorm of each row: `x / √(mean(x²) + epsilon) · scale`.
  ///
  /// @param scale the address of one row of scales
  /// @param plusOne whether 1 is added to each element of that row
  public void norm(Rows rows, long scale, double epsilon, boolean plusOne) {
    launch(rows, 0, rows.rows(), scale, 0, plusOne ? 1 : 0, 0, (float) epsilon);
  }

  /// Rotary position embedding: rotates pairs, each of an element of a row's first half and the
  /// element at the same index of its second half, by the angles of the row's token.
  ///
  /// @param cosines the address of `angles` rows of `half` elements, as is `sines`. Token `i` has
  ///     the row `i` modulo `angles`
  /// @param half how many pairs are rotated; the elements after them do not change
  /// @param heads the number of rows of one token
  public void turn(Rows rows, long cosines, long sines, int angles, int half, int heads) {
    launch(rows, 1, blocks(rows), cosines, sines, half, heads, angles);
  }

  /// `silu(x) · by`, element by element.
  ///
  /// @param by the address of rows of the same number and width
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
