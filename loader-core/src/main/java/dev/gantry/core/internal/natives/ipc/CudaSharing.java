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
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUmemAccessDesc;
import jcuda.driver.CUmemAccess_flags;
import jcuda.driver.CUmemAllocationGranularity_flags;
import jcuda.driver.CUmemAllocationHandleType;
import jcuda.driver.CUmemAllocationProp;
import jcuda.driver.CUmemAllocationType;
import jcuda.driver.CUmemGenericAllocationHandle;
import jcuda.driver.CUmemLocation;
import jcuda.driver.CUmemLocationType;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;

/// Device memory that several processes map: `cuMemCreate` and its kin, by descriptors. The memory goes
/// with its last mapping and descriptor, in whichever process. Calls need a current context.
public final class CudaSharing {
  private static final int DESCRIPTOR =
      CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

  // JCuda 12.6 passes null for the shareable handle, so these are bound here. Every argument takes
  // a
  // register, whatever its width.
  // CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
  // type,
  // flags)
  private static final MethodHandle EXPORT = function("cuMemExportToShareableHandle");
  // CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
  // type)
  private static final MethodHandle IMPORT = function("cuMemImportFromShareableHandle");
  // CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, handle, unsigned long long
  // flags)
  private static final MethodHandle MAP = function("cuMemMap");
  // CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
  private static final MethodHandle RELEASE = function("cuMemRelease");

  private CudaSharing() {}

  /// What sizes and addresses of such memory are multiples of.
  public static long granularity(int ordinal) {
    long[] bytes = new long[1];
    check(
        JCudaDriver.cuMemGetAllocationGranularity(
            bytes,
            kind(ordinal),
            CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
        "cuMemGetAllocationGranularity",
        "cuda:" + ordinal);
    return bytes[0];
  }

  /// New memory.
  ///
  /// @param bytes a multiple of [#granularity]
  /// @return its descriptor, which is the caller's to close
  public static int create(int ordinal, long bytes) {
    Handle created = new Handle();
    String subject = bytes + " bytes of cuda:" + ordinal + " that processes can share";
    check(JCudaDriver.cuMemCreate(created, bytes, kind(ordinal), 0), "cuMemCreate", subject);
    long handle = created.raw();
    try (Arena arena = Arena.ofConfined()) {
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

  /// Maps memory, and returns where. The descriptor may be closed afterwards.
  public static long map(int ordinal, int descriptor, long bytes, boolean writable) {
    String subject = bytes + " bytes of cuda:" + ordinal;
    long handle;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment imported = arena.allocate(JAVA_LONG);
      check(
          call(IMPORT, imported.address(), descriptor, DESCRIPTOR, 0, 0),
          "cuMemImportFromShareableHandle",
          subject);
      handle = imported.get(JAVA_LONG, 0);
    }
    try {
      Address address = new Address(0);
      check(
          JCudaDriver.cuMemAddressReserve(address, bytes, 0, new CUdeviceptr(), 0),
          "cuMemAddressReserve",
          subject);
      boolean mapped = false;
      try {
        check(call(MAP, address.raw(), bytes, 0, handle, 0), "cuMemMap", subject);
        mapped = true;
        int flags =
            writable
                ? CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                : CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READ;
        CUmemAccessDesc access = new CUmemAccessDesc(location(ordinal), flags);
        check(
            JCudaDriver.cuMemSetAccess(address, bytes, new CUmemAccessDesc[] {access}, 1),
            "cuMemSetAccess",
            subject);
        return address.raw();
      } catch (TransferException refused) {
        if (mapped) {
          int _ = JCudaDriver.cuMemUnmap(address, bytes);
        }
        int _ = JCudaDriver.cuMemAddressFree(address, bytes);
        throw refused;
      }
    } finally {
      release(handle);
    }
  }

  /// After all work that uses the memory.
  public static void unmap(long address, long bytes) {
    check(JCudaDriver.cuMemUnmap(new Address(address), bytes), "cuMemUnmap", bytes + " bytes");
    check(
        JCudaDriver.cuMemAddressFree(new Address(address), bytes),
        "cuMemAddressFree",
        bytes + " bytes");
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

  private static MethodHandle function(String name) {
    return Linker.nativeLinker()
        .downcallHandle(
            SymbolLookup.libraryLookup("libcuda.so.1", Arena.global()).findOrThrow(name),
            FunctionDescriptor.of(
                JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG));
  }

  private static CUmemAllocationProp kind(int ordinal) {
    CUmemAllocationProp kind = new CUmemAllocationProp();
    kind.type = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.requestedHandleTypes = DESCRIPTOR;
    kind.location = location(ordinal);
    kind.win32HandleMetaData = new Pointer();
    return kind;
  }

  private static CUmemLocation location(int ordinal) {
    return new CUmemLocation(CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, ordinal);
  }

  private static void check(int result, String operation, String subject) {
    if (result != CUresult.CUDA_SUCCESS) {
      throw new TransferException(operation, subject, CudaDriver.failure(result));
    }
  }

  /// A handle whose native value shows.
  private static final class Handle extends CUmemGenericAllocationHandle {
    long raw() {
      return getNativePointer();
    }
  }

  private static final class Address extends CUdeviceptr {
    Address(long address) {
      super(new CUdeviceptr(), address);
    }

    long raw() {
      return getNativePointer() + getByteOffset();
    }
  }
}
