// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;

/// Memory of `cuda:0` like PyTorch's expandable segments: `cuMemCreate` makes it, and `cuMemMap`
/// maps it. The class does not use JCuda, whose call of `cuMemCreate` the driver refuses (CUDA
/// 13.0: `CUDA_ERROR_INVALID_VALUE`).
final class MappedMemory implements AutoCloseable {
  private static final int PINNED = 1;
  private static final int ON_DEVICE = 1;
  private static final int READ_AND_WRITE = 3;

  private final Arena arena = Arena.ofConfined();
  private final SymbolLookup library = SymbolLookup.libraryLookup("libcuda.so.1", arena);
  private final long bytes;
  private final long handle;
  private final long address;

  /// Makes and maps the memory. The caller must have entered the device's context.
  ///
  /// @param bytes a multiple of the device's granularity, 2 MiB
  MappedMemory(long bytes) throws Throwable {
    this.bytes = bytes;
    // The fields of CUmemAllocationProp are: type, handle types, the location's type and id, then
    // a pointer and flags, which are all 0.
    MemorySegment kind = arena.allocate(32, Long.BYTES);
    kind.setAtIndex(JAVA_INT, 0, PINNED);
    kind.setAtIndex(JAVA_INT, 2, ON_DEVICE);
    MemorySegment result = arena.allocate(JAVA_LONG);
    call("cuMemCreate", of(ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG), result, bytes, kind, 0L);
    handle = result.get(JAVA_LONG, 0);
    call(
        "cuMemAddressReserve",
        of(ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
        result,
        bytes,
        0L,
        0L,
        0L);
    address = result.get(JAVA_LONG, 0);
    call(
        "cuMemMap",
        of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
        address,
        bytes,
        0L,
        handle,
        0L);
    // The fields of CUmemAccessDesc are: the location's type and id, and flags.
    MemorySegment access = arena.allocateFrom(JAVA_INT, ON_DEVICE, 0, READ_AND_WRITE);
    call(
        "cuMemSetAccess", of(JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG), address, bytes, access, 1L);
  }

  long address() {
    return address;
  }

  @Override
  public void close() {
    try (arena) {
      call("cuMemUnmap", of(JAVA_LONG, JAVA_LONG), address, bytes);
      call("cuMemAddressFree", of(JAVA_LONG, JAVA_LONG), address, bytes);
      call("cuMemRelease", of(JAVA_LONG), handle);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static FunctionDescriptor of(MemoryLayout... parameters) {
    return FunctionDescriptor.of(JAVA_INT, parameters);
  }

  private void call(String name, FunctionDescriptor type, Object... arguments) throws Throwable {
    Object result =
        Linker.nativeLinker()
            .downcallHandle(library.findOrThrow(name), type)
            .invokeWithArguments(arguments);
    assertThat(result).as(name).isEqualTo(0);
  }
}
