// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;

/// The heap of the C library, which every platform has. It is used since the JDK bounds the native
/// memory that it allocates itself by the size of the Java heap.
public final class CHeap {
  private static final Linker LINKER = Linker.nativeLinker();

  // void *calloc(size_t nmemb, size_t size)
  private static final MethodHandle CALLOC =
      LINKER.downcallHandle(
          LINKER.defaultLookup().findOrThrow("calloc"),
          FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG));

  // void free(void *ptr)
  private static final MethodHandle FREE =
      LINKER.downcallHandle(
          LINKER.defaultLookup().findOrThrow("free"), FunctionDescriptor.ofVoid(JAVA_LONG));

  private CHeap() {}

  /// Allocates `bytes` bytes of zeros and returns their address; 0 if there is too little memory.
  public static long allocate(long bytes) {
    try {
      return (long) CALLOC.invokeExact(1L, bytes);
    } catch (Throwable e) {
      throw new IllegalStateException("calling calloc", e);
    }
  }

  public static void free(long address) {
    try {
      FREE.invokeExact(address);
    } catch (Throwable e) {
      throw new IllegalStateException("calling free", e);
    }
  }
}
