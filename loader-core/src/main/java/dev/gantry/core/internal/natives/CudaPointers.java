// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static dev.gantry.core.internal.natives.CudaDriver.check;
import static dev.gantry.core.internal.natives.CudaDriver.hex;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.OptionalLong;
import jcuda.Pointer;
import jcuda.driver.CUmemGenericAllocationHandle;
import jcuda.driver.CUmemorytype;
import jcuda.driver.CUpointer_attribute;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;

/// Asks the CUDA driver about addresses: `cuPointerGetAttribute` and related calls. They need a current context.
/// Thread-safe.
public final class CudaPointers {
  /// How memory was allocated, which decides which operations the memory supports.
  public enum Kind {
    /// Memory of `cuMemAlloc`, which `cudaMalloc` uses too.
    ORDINARY("ordinary device memory"),
    /// Memory of `cuMemAllocManaged`, which moves between host and device.
    MANAGED("managed memory, which moves between host and device"),
    /// Memory of `cuMemAllocAsync`, from a stream-ordered pool.
    POOLED("memory of a stream-ordered pool"),
    /// Memory mapped by `cuMemCreate` and `cuMemMap`, such as PyTorch's expandable segments.
    MAPPED("virtual memory mapped by cuMemMap, as PyTorch's expandable segments are"),
    /// Pinned memory of the host.
    PINNED_HOST("pinned host memory");

    private final String words;

    Kind(String words) {
      this.words = words;
    }

    /// The kind in words, for messages.
    public String words() {
      return words;
    }
  }

  /// One allocation, or one mapping of [Kind#MAPPED] memory.
  ///
  /// @param device the ordinal of the memory's device
  /// @param bufferId a number that no other allocation of this process has or will have; 0 if the driver gives none
  public record Allocation(long base, long bytes, int device, long bufferId, Kind kind) {
    public long end() {
      return base + bytes;
    }
  }

  private CudaPointers() {}

  /// Returns the allocation that contains `address`; absent if the driver knows none.
  public static Availability<Allocation> allocation(long address) {
    OptionalLong type = get(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    OptionalLong base = get(CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
    OptionalLong bytes = get(CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_SIZE, address);
    if (type.isEmpty() || base.isEmpty() || bytes.isEmpty()) {
      return Availability.absent(hex(address) + " is not memory of a CUDA device");
    }
    return Availability.present(
        new Allocation(
            base.getAsLong(),
            bytes.getAsLong(),
            (int) get(CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address).orElse(-1),
            bufferId(address),
            kind((int) type.getAsLong(), address)));
  }

  /// Describes an address and its allocation, for messages.
  static String words(long address) {
    return switch (allocation(address)) {
      case Availability.Absent<Allocation>(String reason) -> reason;
      case Availability.Present<Allocation>(Allocation all) ->
          "%s (cuda:%d, %d bytes at %s)"
              .formatted(hex(address), all.device(), all.bytes(), hex(all.base()));
    };
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

  /// Whether `cuMemCreate` allocated the memory: only such memory has a handle.
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

  /// Returns the unique number of the allocation that contains `address`; 0 if there is none.
  /// Memory that is later allocated at the same address has another number.
  public static long bufferId(long address) {
    return get(CUpointer_attribute.CU_POINTER_ATTRIBUTE_BUFFER_ID, address).orElse(0);
  }

  /// Makes synchronous copies of the allocation at `address` wait for the device, which direct I/O into it requires.
  public static void syncMemoryOperations(long address) {
    check(
        JCudaDriver.cuPointerSetAttribute(
            Pointer.to(new int[] {1}),
            CUpointer_attribute.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
            new CudaDriver.Address(address)),
        "cuPointerSetAttribute",
        hex(address));
  }

  /// Returns an attribute of up to eight bytes; empty if the driver does not give it.
  private static OptionalLong get(int attribute, long address) {
    // Memory outside of the heap: JCuda leaves what the driver writes to an array to a JVM that
    // lends the array itself,
    // and one that lends a copy, as with -Xcheck:jni, would lose it. Shorter attributes fill the
    // first bytes, in
    // little-endian order as Java reads them here.
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment value = arena.allocate(ValueLayout.JAVA_LONG);
      int result =
          JCudaDriver.cuPointerGetAttribute(
              new CudaDriver.HostAddress(value.address()),
              attribute,
              new CudaDriver.Address(address));
      return result == CUresult.CUDA_SUCCESS
          ? OptionalLong.of(value.get(ValueLayout.JAVA_LONG, 0))
          : OptionalLong.empty();
    }
  }
}
