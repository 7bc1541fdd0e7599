// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.TensorShape;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/// `at::fromDLPack`, which libtorch exports up to 2.10. It reports failure by a C++ exception, which
/// would end the JVM, so [TorchLibrary] checks dtype, shape and address first.
final class DlPackWrapper implements TensorWrapper {
  private static final String FROM_DLPACK = "_ZN2at10fromDLPackEP15DLManagedTensor";
  // at::Tensor at::fromDLPack(DLManagedTensor *src);
  // at::Tensor is not trivial, so the C++ ABI returns it through a hidden first argument:
  // at::Tensor *f(at::Tensor *result, DLManagedTensor *src);
  private final NativeFunction fromDlPack;

  private DlPackWrapper(NativeFunction fromDlPack) {
    this.fromDlPack = fromDlPack;
  }

  static Optional<TensorWrapper> find(NativeSymbols symbols) {
    return symbols.optional(FROM_DLPACK).map(DlPackWrapper::new);
  }

  @Override
  public long wrap(
      long address, Device device, DType dtype, TensorShape shape, long[] strides, long release) {
    // The caller's to delete, with C++ `delete`; glibc's
    // operator new and delete are malloc and free.
    MemorySegment tensor = NativeHeap.allocate(Long.BYTES);
    MemorySegment managed;
    try {
      managed = DlPack.managed(address, device, dtype, shape, strides, release);
    } catch (OutOfMemoryError noMemory) {
      NativeHeap.free(tensor);
      throw noMemory;
    }
    long _ = fromDlPack.call(tensor.address(), managed.address());
    return tensor.address();
  }
}
