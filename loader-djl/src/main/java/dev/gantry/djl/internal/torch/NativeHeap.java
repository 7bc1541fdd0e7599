// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// The C library's heap, for memory that native code owns. An arena per tensor would cost a handshake
/// with all threads on each close; malloc costs nanoseconds. Thread-safe.
final class NativeHeap {
  private static final Linker LINKER = Linker.nativeLinker();

  // void *malloc(size_t size);
  private static final MethodHandle MALLOC =
      LINKER.downcallHandle(
          LINKER.defaultLookup().findOrThrow("malloc"), FunctionDescriptor.of(ADDRESS, JAVA_LONG));

  // void free(void *ptr);
  private static final MethodHandle FREE =
      LINKER.downcallHandle(
          LINKER.defaultLookup().findOrThrow("free"), FunctionDescriptor.ofVoid(ADDRESS));

  private NativeHeap() {}

  /// `bytes` bytes, aligned to 16, not zeroed; the caller frees them or hands them over.
  ///
  /// @throws OutOfMemoryError if the C library has none left
  static MemorySegment allocate(long bytes) {
    MemorySegment memory;
    try {
      memory = (MemorySegment) MALLOC.invokeExact(bytes);
    } catch (Throwable fault) {
      throw NativeSymbols.broken(fault);
    }
    if (memory.equals(MemorySegment.NULL)) {
      throw new OutOfMemoryError("malloc of " + bytes + " bytes");
    }
    return memory.reinterpret(bytes);
  }

  static void free(MemorySegment memory) {
    try {
      FREE.invokeExact(memory);
    } catch (Throwable fault) {
      throw NativeSymbols.broken(fault);
    }
  }
}
