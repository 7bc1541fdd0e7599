// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;

/// Properties of the open driver, as `cuFileDriverGetProperties` gives them. Sizes are in KiB. A field
/// that an older library does not know is 0.
///
/// @param driverMajor of nvidia-fs; 0 without it
/// @param pollThresholdKib the largest request that is polled for
/// @param maxDirectIoKib the largest request that libcufile makes of nvidia-fs
/// @param storageFlags kinds of storage that can be reached directly, as bits of
///     `CUfileDriverStatusFlags_t`
/// @param controlFlags bits of `CUfileDriverControlFlags_t`
/// @param featureFlags bits of `CUfileFeatureFlags_t`
/// @param deviceCacheKib device memory for bounce buffers, on each device
/// @param bounceBufferKib one bounce buffer
/// @param pinnedKib how much device memory may be registered, on each device; -1 for no limit
/// @param batchEntries the most entries of a batch: `io_batchsize`
/// @param batchTimeoutMillis after which libcufile gives up a batch's entry
public record CuFileProperties(
    int driverMajor,
    int driverMinor,
    long pollThresholdKib,
    long maxDirectIoKib,
    int storageFlags,
    int controlFlags,
    int featureFlags,
    int deviceCacheKib,
    int bounceBufferKib,
    int pinnedKib,
    int batchEntries,
    int batchTimeoutMillis) {
  // typedef struct CUfileDrvProps {
  //   struct { unsigned major_version, minor_version; size_t poll_thresh_size, max_direct_io_size;
  //            unsigned dstatusflags, dcontrolflags; } nvfs;
  //   unsigned fflags, max_device_cache_size, per_buffer_cache_size, max_device_pinned_mem_size,
  //            max_batch_io_size, max_batch_io_timeout_msecs;
  // } CUfileDrvProps_t;
  private static final StructLayout LAYOUT =
      MemoryLayout.structLayout(
          JAVA_INT.withName("major_version"),
          JAVA_INT.withName("minor_version"),
          JAVA_LONG.withName("poll_thresh_size"),
          JAVA_LONG.withName("max_direct_io_size"),
          JAVA_INT.withName("dstatusflags"),
          JAVA_INT.withName("dcontrolflags"),
          JAVA_INT.withName("fflags"),
          JAVA_INT.withName("max_device_cache_size"),
          JAVA_INT.withName("per_buffer_cache_size"),
          JAVA_INT.withName("max_device_pinned_mem_size"),
          JAVA_INT.withName("max_batch_io_size"),
          JAVA_INT.withName("max_batch_io_timeout_msecs"));

  /// Room for the structs of versions to come: the library writes as much as it knows.
  static final long ROOM_BYTES = 4096;

  // CU_FILE_NVME_P2P_SUPPORTED
  private static final int NVME_PEER_TO_PEER = 1 << 11;

  // CU_FILE_USE_POLL_MODE, CU_FILE_ALLOW_COMPAT_MODE
  private static final int POLL_MODE = 1;
  private static final int COMPAT_MODE = 1 << 1;

  static CuFileProperties read(MemorySegment struct) {
    return new CuFileProperties(
        intAt(struct, "major_version"),
        intAt(struct, "minor_version"),
        struct.get(JAVA_LONG, offset("poll_thresh_size")),
        struct.get(JAVA_LONG, offset("max_direct_io_size")),
        intAt(struct, "dstatusflags"),
        intAt(struct, "dcontrolflags"),
        intAt(struct, "fflags"),
        intAt(struct, "max_device_cache_size"),
        intAt(struct, "per_buffer_cache_size"),
        intAt(struct, "max_device_pinned_mem_size"),
        intAt(struct, "max_batch_io_size"),
        intAt(struct, "max_batch_io_timeout_msecs"));
  }

  /// Whether bytes may be copied through the CPU if they cannot go directly.
  public boolean allowsCompatMode() {
    return (controlFlags & COMPAT_MODE) != 0;
  }

  /// Whether small requests are polled for.
  public boolean polls() {
    return (controlFlags & POLL_MODE) != 0;
  }

  /// Whether NVMe disks write into device memory without nvidia-fs.
  public boolean hasPeerToPeerNvme() {
    return (storageFlags & NVME_PEER_TO_PEER) != 0;
  }

  private static int intAt(MemorySegment struct, String field) {
    return struct.get(JAVA_INT, offset(field));
  }

  private static long offset(String field) {
    return LAYOUT.byteOffset(PathElement.groupElement(field));
  }
}
