// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.MemorySegment;

/// The properties of the open driver, as `cuFileDriverGetProperties` reports them.
///
/// @param statusFlags the bits of `dstatusflags`
/// @param controlFlags the bits of `dcontrolflags`
/// @param features the bits of `fflags`
public record CuFileProperties(int statusFlags, int controlFlags, int features) {
  // typedef struct CUfileDrvProps {
  //   struct { unsigned major_version, minor_version; size_t poll_thresh_size, max_direct_io_size;
  //            unsigned dstatusflags, dcontrolflags; } nvfs;
  //   unsigned fflags;
  //   ...
  // } CUfileDrvProps_t;
  private static final long STATUS_FLAGS = 24;
  private static final long CONTROL_FLAGS = 28;
  private static final long FEATURES = 32;

  /// The size of the struct's buffer. It leaves space for larger structs of later versions, since
  /// the library writes all fields that it knows.
  static final long ROOM_BYTES = 4096;

  // CU_FILE_P2P_SUPPORTED, from libcufile 1.16 on
  private static final int PEER_TO_PEER = 1 << 4;

  // CU_FILE_NVME_P2P_SUPPORTED, which has no meaning from libcufile 1.16 on
  private static final int NVME_PEER_TO_PEER = 1 << 11;

  // CU_FILE_ALLOW_COMPAT_MODE
  private static final int COMPAT_MODE = 1 << 1;

  // CU_FILE_POSIX_IO_MODE and CU_FILE_FALLBACK_IO_MODE, from libcufile 1.17 on
  private static final int FALLBACKS = 1 << 2 | 1 << 4;

  static CuFileProperties read(MemorySegment struct) {
    return new CuFileProperties(
        struct.get(JAVA_INT, STATUS_FLAGS),
        struct.get(JAVA_INT, CONTROL_FLAGS),
        struct.get(JAVA_INT, FEATURES));
  }

  /// Whether libcufile may silently repeat a failed direct transfer through the CPU, or replace it
  /// by POSIX calls.
  public boolean hasFallbacks() {
    return (controlFlags & FALLBACKS) != 0;
  }

  /// Whether bytes may be copied through the CPU if they cannot be moved directly.
  public boolean allowsCompatMode() {
    return (controlFlags & COMPAT_MODE) != 0;
  }

  /// Whether disks can write into device memory without nvidia-fs: valid for libraries that have
  /// [CuFile#peerToPeer].
  public boolean hasPeerToPeer() {
    return (features & PEER_TO_PEER) != 0;
  }

  /// Whether NVMe disks can write into device memory without nvidia-fs: valid for libraries before
  /// 1.16.
  public boolean hasPeerToPeerNvme() {
    return (statusFlags & NVME_PEER_TO_PEER) != 0;
  }
}
