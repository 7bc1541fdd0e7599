// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDScope;
import ai.djl.ndarray.types.DataType;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.util.NativeResource;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.PrivateField;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.torch.TorchLibrary;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// Takes over arrays that DJL has made.
public final class Guards {
  private static final PrivateField<AtomicReference<@Nullable Long>> HANDLE =
      PrivateField.of(NativeResource.class, "handle", AtomicReference.class.getName() + "<T>");

  /// DJL's handle for no tensor. It is not an address, and neither is [#STRINGS].
  static final long NO_TENSOR = 0;

  private static final long STRINGS = -1;

  private Guards() {}

  /// Takes over an array of DJL's own, which the caller must not use any more. A [GantryNDArray]
  /// or an array of strings is returned unchanged.
  ///
  /// @throws MisuseException if the array belongs to another engine
  public static PtNDArray guard(NDArray array) {
    return guard(array, false);
  }

  /// @param readOnly whether operations that would change the new array are refused
  static PtNDArray guard(NDArray array, boolean readOnly) {
    PtNDArray plain = TorchArrays.torchArray(array);
    if (plain instanceof GantryNDArray) {
      return plain;
    }
    long handle = plain.getHandle();
    if (handle == NO_TENSOR) {
      // DJL returns this handle from a convolution of arrays that are not images. Any use of it
      // ends the JVM.
      plain.close();
      throw new MisuseException("DJL cannot do this operation with these arrays");
    }
    if (handle == STRINGS) {
      return plain;
    }
    return successor(plain, PyTorch.library().share(handle), plain.size(), readOnly);
  }

  /// @param handle the handle of the plain array's tensor, which the new array owns
  private static GantryNDArray successor(
      PtNDArray plain, long handle, long elements, boolean readOnly) {
    TorchLibrary torch = PyTorch.library();
    DataType type = torch.dtype(handle).flatMap(PyTorch::dataType).orElse(DataType.UNKNOWN);
    GantryNDArray guarded =
        GantryNDArray.over(plain.getManager(), handle, type, elements, readOnly);
    guarded.setName(plain.getName());
    NDScope.unregister(plain);
    plain.detach();
    guarded.hold(plain);
    return guarded;
  }

  /// Takes over an array of DJL's own, as [#guard] does, and closes it, so that code which still
  /// holds the array finds it closed.
  ///
  /// @throws MisuseException if the array belongs to another engine
  public static GantryNDArray takeOver(NDArray array) {
    PtNDArray plain = TorchArrays.torchArray(array);
    if (plain instanceof GantryNDArray ours) {
      return ours;
    }
    PrivateField.requireAll(List.of(HANDLE));
    long elements = plain.size();
    // The handle is moved and not copied, so that an operation which has begun continues with a
    // valid handle.
    long handle = Objects.requireNonNull(HANDLE.get(plain).getAndSet(null));
    return successor(plain, handle, elements, false);
  }

  /// Whether the memory of `made` is a part of the memory of `whole`.
  static boolean isView(GantryNDArray whole, NDArray made) {
    if (!(made instanceof PtNDArray plain)
        || plain instanceof GantryNDArray
        || plain.getHandle() == NO_TENSOR
        || plain.getHandle() == STRINGS
        || plain.size() == 0
        || plain.isSparse()) {
      return false;
    }
    TorchLibrary torch = PyTorch.library();
    long from = torch.address(whole.getHandle());
    long at = torch.address(plain.getHandle());
    // Only the first address of `made` is compared: a view with gaps may end after `whole`, but it
    // begins within it.
    long[] strides = torch.strides(whole.getHandle());
    long last = 0;
    for (int axis = 0; axis < strides.length; axis++) {
      last += (whole.getShape().get(axis) - 1) * strides[axis];
    }
    return at >= from
        && at < from + (last + 1) * whole.elementBytes()
        && whole.getDevice().equals(plain.getDevice());
  }
}
