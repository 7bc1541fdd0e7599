// SPDX-License-Identifier: Apache-2.0
package ai.djl.pytorch.engine;

import ai.djl.ndarray.types.SparseFormat;
import dev.gantry.djl.internal.torch.PyTorch;

/// An array that every optimizer of DJL can update; see [UpdatingNDArrayEx].
public final class UpdatingNDArray extends PtNDArray {
  private UpdatingNDArray(PtNDManager manager, long handle) {
    super(manager, handle);
  }

  /// Makes an array over the same tensor, and closes the given array.
  public static UpdatingNDArray of(PtNDArray array) {
    try (array) {
      return new UpdatingNDArray(array.getManager(), PyTorch.library().share(array.getHandle()));
    }
  }

  @Override
  public PtNDArrayEx getNDArrayInternal() {
    return new UpdatingNDArrayEx(this);
  }

  @Override
  public PtNDArray getGradient() {
    return of(super.getGradient());
  }

  @Override
  public UpdatingNDArray duplicate() {
    return of((PtNDArray) super.duplicate());
  }

  /// Returns a dense array: Adagrad asks for a row-sparse gradient, which PyTorch does not have.
  @Override
  public PtNDArray toSparse(SparseFormat format) {
    return duplicate();
  }
}
