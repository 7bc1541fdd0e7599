// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;
import ai.djl.pytorch.engine.PtNDArray;
import dev.gantry.core.Device;
import dev.gantry.core.internal.convert.CudaRows;
import dev.gantry.core.internal.convert.CudaRows.Rows;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.torch.TorchCodes;
import dev.gantry.djl.internal.torch.TorchLibrary;
import java.util.Arrays;
import java.util.Optional;

/// Operations of a transformer's layer on the rows of an array on a GPU, each in one launch. No
/// gradients are recorded. The results are empty for arrays on the CPU, for other types than
/// FLOAT32, FLOAT16 and BFLOAT16, and for arrays that are not contiguous. As thread-safe as the
/// arrays.
public final class FusedRows {
  private final CudaRows kernel;
  private final PtNDArray x;
  private final Rows rows;
  private final long result;

  private FusedRows(CudaRows kernel, PtNDArray x, Rows rows, long result) {
    this.kernel = kernel;
    this.x = x;
    this.rows = rows;
    this.result = result;
  }

  /// RMSNorm over the last axis: `x / √(mean(x²) + epsilon) · scale`.
  ///
  /// @param scale one row of scales, of the type of `x`
  /// @param plusOne whether 1 is added to each element of `scale`
  public static Optional<NDArray> norm(NDArray x, NDArray scale, double epsilon, boolean plusOne) {
    return isLike(x, scale)
        ? of(x).map(fused -> fused.norm(address(scale), epsilon, plusOne))
        : Optional.empty();
  }

  /// Rotary position embedding: rotates pairs, each of an element of a row's first half and the
  /// element at the same index of its second half, by the angles of the row's token.
  ///
  /// @param x `[batch, length, heads, size]`
  /// @param cosines one row for each token of a text, or of the whole batch. A row has half as
  ///     many elements as are rotated; `sines` has the same shape
  public static Optional<NDArray> turn(NDArray x, NDArray cosines, NDArray sines) {
    return isLike(x, cosines) && isLike(x, sines)
        ? of(x).map(fused -> fused.turn(cosines, sines))
        : Optional.empty();
  }

  /// `silu(x) · by`, element by element.
  public static Optional<NDArray> gate(NDArray x, NDArray by) {
    return isLike(x, by) && x.getShape().equals(by.getShape())
        ? of(x).map(fused -> fused.gate(address(by)))
        : Optional.empty();
  }

  private static boolean isLike(NDArray x, NDArray other) {
    return x.getDevice().isGpu()
        && x.getDataType() == other.getDataType()
        && isDense(TorchArrays.torchArray(other));
  }

  private static boolean isDense(PtNDArray array) {
    long[] dense = TorchCodes.denseStrides(PyTorch.shape(array.getShape()));
    return Arrays.equals(PyTorch.library().strides(array.getHandle()), dense);
  }

  private static long address(NDArray array) {
    return PyTorch.library().address(TorchArrays.torchArray(array).getHandle());
  }

  private static Optional<FusedRows> of(NDArray x) {
    PtNDArray array = TorchArrays.torchArray(x);
    DataType type = array.getDataType();
    if (type == DataType.UNKNOWN
        || type == DataType.STRING
        || !CudaRows.knows(PyTorch.dtype(type))
        || array.size() == 0
        || !isDense(array)) {
      return Optional.empty();
    }
    TorchLibrary torch = PyTorch.library();
    Device device = PyTorch.device(array.getDevice());
    if (!(device instanceof Device.Cuda cuda)) {
      return Optional.empty();
    }
    int width = Math.toIntExact(array.getShape().get(array.getShape().dimension() - 1));
    CudaRows kernel = CudaRows.of(cuda);
    long result = torch.empty(PyTorch.shape(array.getShape()), PyTorch.dtype(type), device);
    Rows rows =
        new Rows(
            torch.address(array.getHandle()),
            torch.address(result),
            array.size() / width,
            width,
            PyTorch.dtype(type));
    return Optional.of(new FusedRows(kernel, array, rows, result));
  }

  private NDArray norm(long scale, double epsilon, boolean plusOne) {
    return made(() -> kernel.norm(rows, scale, epsilon, plusOne));
  }

  private NDArray turn(NDArray cosines, NDArray sines) {
    int half = Math.toIntExact(cosines.getShape().get(cosines.getShape().dimension() - 1));
    int angles = Math.toIntExact(cosines.size() / half);
    int heads = Math.toIntExact(x.getShape().get(2));
    return made(() -> kernel.turn(rows, address(cosines), address(sines), angles, half, heads));
  }

  private NDArray gate(long by) {
    return made(() -> kernel.gate(rows, by));
  }

  /// Queues the kernel and returns its result.
  private NDArray made(Runnable launch) {
    try {
      launch.run();
    } catch (RuntimeException failure) {
      PyTorch.library().delete(result);
      throw failure;
    }
    return GantryNDArray.over(x.getManager(), result, x.getDataType(), x.size());
  }
}
