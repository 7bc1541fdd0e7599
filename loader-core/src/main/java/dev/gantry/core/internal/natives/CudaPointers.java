// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static dev.gantry.core.internal.natives.CudaDriver.check;
import static dev.gantry.core.internal.natives.CudaDriver.hex;

import java.util.OptionalLong;
import jcuda.Pointer;
import jcuda.driver.CUmemGenericAllocationHandle;
import jcuda.driver.CUmemorytype;
import jcuda.driver.CUpointer_attribute;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;

/// What the CUDA driver knows of addresses: `cuPointerGetAttribute` and its kin. Calls need a current
/// context. Thread-safe.
public final class CudaPointers {
  static final CudaPointers INSTANCE = new CudaPointers();

  /// How memory was allocated, which decides what can be done with it.
  public enum Kind {
    /// Allocated by `cuMemAlloc`, as `cudaMalloc` does.
    ORDINARY("ordinary device memory"),
    /// Allocated by `cuMemAllocManaged`: it moves between host and device.
    MANAGED("managed memory, which moves between host and device"),
    /// Allocated by `cuMemAllocAsync`, out of a pool.
    POOLED("memory of a stream-ordered pool"),
    /// Mapped by `cuMemCreate` and `cuMemMap`, as PyTorch's expandable segments are.
    MAPPED("virtual memory mapped by cuMemMap, as PyTorch's expandable segments are"),
    /// Pinned memory of the host.
    PINNED_HOST("pinned host memory");

    private final String words;

    Kind(String words) {
      this.words = words;
    }

    /// For messages.
    public String words() {
      return words;
    }
  }

  /// One allocation, or one mapping of [Kind#MAPPED] memory.
  ///
  /// @param device whose memory it is
  /// @param bufferId which no other allocation of this process has or gets; 0 where the driver gives
  ///     none
  public record Allocation(long base, long bytes, int device, long bufferId, Kind kind) {
    public long end() {
      return base + bytes;
    }
  }

  private CudaPointers() {}

  /// The allocation that holds `address`; absent if the driver knows none.
  public Availability<Allocation> allocation(long address) {
    OptionalLong type = get(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    OptionalLong base = get(CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
    OptionalLong bytes = get(CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_SIZE, address);
    if (type.isEmpty() || base.isEmpty() || bytes.isEmpty()) {
      return Availability.absent(hex(address) + " is no memory of a CUDA device");
    }
    return Availability.present(
        new Allocation(
            base.getAsLong(),
            bytes.getAsLong(),
            (int) get(CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address).orElse(-1),
            bufferId(address),
            kind((int) type.getAsLong(), address)));
  }

  private static Kind kind(int type, long address) {
    if (get(CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED, address).orElse(0) != 0) {
      return Kind.MANAGED;
    }
    if (type == CUmemorytype.CU_MEMORYTYPE_HOST) {
      return Kind.PINNED_HOST;
    }
    if (get(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address).orElse(0) != 0) {
      return Kind.POOLED;
    }
    return isMapped(address) ? Kind.MAPPED : Kind.ORDINARY;
  }

  /// Only memory of `cuMemCreate` has a handle.
  private static boolean isMapped(long address) {
    CUmemGenericAllocationHandle handle = new CUmemGenericAllocationHandle();
    int result =
        JCudaDriver.cuMemRetainAllocationHandle(handle, new CudaDriver.HostAddress(address));
    if (result != CUresult.CUDA_SUCCESS) {
      return false;
    }
    check(JCudaDriver.cuMemRelease(handle), "cuMemRelease", hex(address));
    return true;
  }

  /// The number of the allocation that holds `address`, which no other has; 0 if there is none. It
  /// tells memory from what is allocated at the same address later.
  public long bufferId(long address) {
    return get(CUpointer_attribute.CU_POINTER_ATTRIBUTE_BUFFER_ID, address).orElse(0);
  }

  /// Makes synchronous copies of the allocation at `address` wait for the device, as direct I/O into it
  /// needs.
  public void syncMemoryOperations(long address) {
    check(
        JCudaDriver.cuPointerSetAttribute(
            Pointer.to(new int[] {1}),
            CUpointer_attribute.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
            new CudaDriver.Address(address)),
        "cuPointerSetAttribute",
        hex(address));
  }

  /// An attribute of up to eight bytes; empty if the driver does not give it.
  private static OptionalLong get(int attribute, long address) {
    // Shorter ones fill the first bytes, and both sides are little endian.
    long[] value = new long[1];
    int result =
        JCudaDriver.cuPointerGetAttribute(
            Pointer.to(value), attribute, new CudaDriver.Address(address));
    return result == CUresult.CUDA_SUCCESS ? OptionalLong.of(value[0]) : OptionalLong.empty();
  }
}
