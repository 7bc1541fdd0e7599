// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;

/// The C library's heap, for memory that native code owns. An arena per tensor would cost a handshake
/// with all threads on each close; malloc costs nanoseconds. Thread-safe.
final class NativeHeap {
  // void *malloc(size_t size);
  private static final NativeFunction MALLOC = function("malloc");

  // void free(void *ptr);
  private static final NativeFunction FREE = function("free");

  private NativeHeap() {}

  private static NativeFunction function(String name) {
    return new NativeFunction(name, Linker.nativeLinker().defaultLookup().findOrThrow(name));
  }

  /// Allocates `bytes` bytes, aligned to 16 and not zeroed. The caller frees them or hands them
  /// over.
  ///
  /// @throws OutOfMemoryError if malloc fails
  static MemorySegment allocate(long bytes) {
    long address = MALLOC.call(bytes);
    if (address == 0) {
      throw new OutOfMemoryError("malloc of " + bytes + " bytes");
    }
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  static void free(MemorySegment memory) {
    long _ = FREE.call(memory.address());
  }
}
