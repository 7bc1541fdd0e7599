// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives.ipc;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;
import java.util.NoSuchElementException;
import java.util.stream.Stream;
import jcuda.driver.CUmemAccess_flags;
import jcuda.driver.CUmemAllocationGranularity_flags;
import jcuda.driver.CUmemAllocationHandleType;
import jcuda.driver.CUmemAllocationType;
import jcuda.driver.CUmemLocationType;
import jcuda.driver.CUresult;

/// Device memory that several processes map, by `cuMemCreate` and its related functions. Processes
/// pass the memory as descriptors. The driver frees the memory when no process has a mapping or a
/// descriptor of it. All calls except [#uuid] need a current context.
///
/// JCuda 12.6 passes null for the shareable handle, and a real driver refuses its
/// `CUmemAllocationProp`, so this class binds all of these functions itself (source of the
/// layouts: `cuda.h` of CUDA 13.0).
public final class CudaSharing {
  private static final int DESCRIPTOR =
      CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

  /// `CUmemAllocationProp`: type, requested handle types, the location's type and number, a pointer for
  /// Windows, and flags, all of which are 0.
  private static final long KIND_BYTES = 32;

  /// `CUmemAccessDesc`: the location's type and number, flags.
  private static final long ACCESS_BYTES = 12;

  private static final long UUID_BYTES = 16;

  // Every argument is passed in a whole register, whatever its width.
  private static final MethodHandle GRANULARITY = function("cuMemGetAllocationGranularity");
  private static final MethodHandle CREATE = function("cuMemCreate");
  private static final MethodHandle EXPORT = function("cuMemExportToShareableHandle");
  private static final MethodHandle IMPORT = function("cuMemImportFromShareableHandle");
  private static final MethodHandle RESERVE = function("cuMemAddressReserve");
  private static final MethodHandle FREE = function("cuMemAddressFree");
  private static final MethodHandle MAP = function("cuMemMap");
  private static final MethodHandle UNMAP = function("cuMemUnmap");
  private static final MethodHandle ACCESS = function("cuMemSetAccess");
  private static final MethodHandle RELEASE = function("cuMemRelease");

  private static final MethodHandle DEVICE = function("cuDeviceGet");

  /// From CUDA 11.4 on; it gives each part of a GPU that MIG divides its own UUID.
  private static final MethodHandle UUID = function("cuDeviceGetUuid_v2", "cuDeviceGetUuid");

  private CudaSharing() {}

  /// Returns the UUID of a device as `nvidia-smi -L` prints it. A device has the same UUID in
  /// every process, but may have different ordinals.
  public static String uuid(int ordinal) {
    String subject = "cuda:" + ordinal;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment device = arena.allocate(JAVA_INT);
      check(call(DEVICE, device.address(), ordinal, 0, 0, 0), "cuDeviceGet", subject);
      MemorySegment bytes = arena.allocate(UUID_BYTES);
      check(
          call(UUID, bytes.address(), device.get(JAVA_INT, 0), 0, 0, 0),
          "cuDeviceGetUuid",
          subject);
      ByteBuffer uuid = bytes.asByteBuffer();
      return "GPU-" + new java.util.UUID(uuid.getLong(), uuid.getLong());
    }
  }

  /// Returns the granularity of shared memory in bytes: sizes and addresses are multiples of it.
  public static long granularity(int ordinal) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bytes = arena.allocate(JAVA_LONG);
      check(
          call(
              GRANULARITY,
              bytes.address(),
              kind(arena, ordinal).address(),
              CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED,
              0,
              0),
          "cuMemGetAllocationGranularity",
          "cuda:" + ordinal);
      return bytes.get(JAVA_LONG, 0);
    }
  }

  /// Allocates memory.
  ///
  /// @param bytes a multiple of [#granularity]
  /// @return the memory's descriptor, which the caller closes
  public static int create(int ordinal, long bytes) {
    String subject = bytes + " bytes of cuda:" + ordinal + " that processes can share";
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment created = arena.allocate(JAVA_LONG);
      check(
          call(CREATE, created.address(), bytes, kind(arena, ordinal).address(), 0, 0),
          "cuMemCreate",
          subject);
      long handle = created.get(JAVA_LONG, 0);
      try {
        MemorySegment descriptor = arena.allocate(JAVA_INT);
        check(
            call(EXPORT, descriptor.address(), handle, DESCRIPTOR, 0, 0),
            "cuMemExportToShareableHandle",
            subject);
        return descriptor.get(JAVA_INT, 0);
      } finally {
        release(handle);
      }
    }
  }

  /// Maps memory, and returns its address. The descriptor may be closed afterwards.
  public static long map(int ordinal, int descriptor, long bytes, boolean writable) {
    String subject = bytes + " bytes of cuda:" + ordinal;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment imported = arena.allocate(JAVA_LONG);
      check(
          call(IMPORT, imported.address(), descriptor, DESCRIPTOR, 0, 0),
          "cuMemImportFromShareableHandle",
          subject);
      long handle = imported.get(JAVA_LONG, 0);
      try {
        MemorySegment reserved = arena.allocate(JAVA_LONG);
        check(call(RESERVE, reserved.address(), bytes, 0, 0, 0), "cuMemAddressReserve", subject);
        long address = reserved.get(JAVA_LONG, 0);
        boolean mapped = false;
        try {
          check(call(MAP, address, bytes, 0, handle, 0), "cuMemMap", subject);
          mapped = true;
          MemorySegment access = arena.allocate(ACCESS_BYTES, Long.BYTES);
          putLocation(access, 0, ordinal);
          access.set(
              JAVA_INT,
              8,
              writable
                  ? CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                  : CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READ);
          check(call(ACCESS, address, bytes, access.address(), 1, 0), "cuMemSetAccess", subject);
          return address;
        } catch (TransferException | OutOfMemoryError refused) {
          if (mapped) {
            int _ = call(UNMAP, address, bytes, 0, 0, 0);
          }
          int _ = call(FREE, address, bytes, 0, 0, 0);
          throw refused;
        }
      } finally {
        release(handle);
      }
    }
  }

  /// Unmaps memory. Call this after all work that uses the memory is done.
  public static void unmap(long address, long bytes) {
    check(call(UNMAP, address, bytes, 0, 0, 0), "cuMemUnmap", bytes);
    check(call(FREE, address, bytes, 0, 0, 0), "cuMemAddressFree", bytes);
  }

  private static void release(long handle) {
    check(call(RELEASE, handle, 0, 0, 0, 0), "cuMemRelease", "memory that processes share");
  }

  private static int call(MethodHandle function, long a, long b, long c, long d, long e) {
    try {
      return (int) (long) function.invokeExact(a, b, c, d, e);
    } catch (RuntimeException | Error failure) {
      throw failure;
    } catch (Throwable failure) {
      throw new IllegalStateException("calling libcuda", failure);
    }
  }

  /// @param names the function's possible names; the first that this driver has is used
  private static MethodHandle function(String... names) {
    SymbolLookup driver = SymbolLookup.libraryLookup("libcuda.so.1", Arena.global());
    MemorySegment found =
        Stream.of(names)
            .flatMap(name -> driver.find(name).stream())
            .findFirst()
            .orElseThrow(() -> new NoSuchElementException(names[0]));
    return Linker.nativeLinker()
        .downcallHandle(
            found,
            FunctionDescriptor.of(
                JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG));
  }

  private static MemorySegment kind(Arena arena, int ordinal) {
    MemorySegment kind = arena.allocate(KIND_BYTES, Long.BYTES);
    kind.set(JAVA_INT, 0, CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED);
    kind.set(JAVA_INT, 4, DESCRIPTOR);
    putLocation(kind, 8, ordinal);
    return kind;
  }

  private static void putLocation(MemorySegment at, long offset, int ordinal) {
    at.set(JAVA_INT, offset, CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE);
    at.set(JAVA_INT, offset + 4, ordinal);
  }

  /// Makes the text only for a failure, since unmapping must not need heap.
  private static void check(int result, String operation, long bytes) {
    if (result != CUresult.CUDA_SUCCESS) {
      check(result, operation, bytes + " bytes");
    }
  }

  private static void check(int result, String operation, String subject) {
    if (result != CUresult.CUDA_SUCCESS) {
      throw new TransferException(operation, subject, CudaDriver.failure(result));
    }
  }
}
