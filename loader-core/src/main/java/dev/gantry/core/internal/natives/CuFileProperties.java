// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.MemorySegment;

/// What `cuFileDriverGetProperties` says of the open driver.
///
/// @param statusFlags the bits of `dstatusflags`
/// @param controlFlags the bits of `dcontrolflags`
public record CuFileProperties(int statusFlags, int controlFlags) {
  // typedef struct CUfileDrvProps {
  //   struct { unsigned major_version, minor_version; size_t poll_thresh_size, max_direct_io_size;
  //            unsigned dstatusflags, dcontrolflags; } nvfs;
  //   ...
  // } CUfileDrvProps_t;
  private static final long STATUS_FLAGS = 24;
  private static final long CONTROL_FLAGS = 28;

  /// Room for larger structs of later versions: the library writes all fields that it knows.
  static final long ROOM_BYTES = 4096;

  // CU_FILE_NVME_P2P_SUPPORTED
  private static final int NVME_PEER_TO_PEER = 1 << 11;

  // CU_FILE_ALLOW_COMPAT_MODE
  private static final int COMPAT_MODE = 1 << 1;

  static CuFileProperties read(MemorySegment struct) {
    return new CuFileProperties(
        struct.get(JAVA_INT, STATUS_FLAGS), struct.get(JAVA_INT, CONTROL_FLAGS));
  }

  /// Whether bytes may be copied through the CPU if they cannot be moved directly.
  public boolean allowsCompatMode() {
    return (controlFlags & COMPAT_MODE) != 0;
  }

  /// Whether NVMe disks can write into device memory without nvidia-fs.
  public boolean hasPeerToPeerNvme() {
    return (statusFlags & NVME_PEER_TO_PEER) != 0;
  }
}
