// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;

/// Properties of the open driver, as `cuFileDriverGetProperties` gives them.
///
/// @param storageFlags kinds of storage that can be reached directly, as bits of
///     `CUfileDriverStatusFlags_t`
/// @param allowsCompatMode whether bytes may be copied through the CPU if they cannot go directly
public record CuFileProperties(int storageFlags, boolean allowsCompatMode) {
  // typedef struct CUfileDrvProps {
  //   struct { unsigned major_version, minor_version; size_t poll_thresh_size, max_direct_io_size;
  //            unsigned dstatusflags, dcontrolflags; } nvfs;
  //   ...
  // } CUfileDrvProps_t;
  private static final StructLayout LAYOUT =
      MemoryLayout.structLayout(
          JAVA_INT.withName("major_version"),
          JAVA_INT.withName("minor_version"),
          JAVA_LONG.withName("poll_thresh_size"),
          JAVA_LONG.withName("max_direct_io_size"),
          JAVA_INT.withName("dstatusflags"),
          JAVA_INT.withName("dcontrolflags"));

  /// Room for the structs of versions to come: the library writes as much as it knows.
  static final long ROOM_BYTES = 4096;

  // CU_FILE_NVME_P2P_SUPPORTED
  private static final int NVME_PEER_TO_PEER = 1 << 11;

  private static final int COMPAT_MODE = 1 << 1;

  static CuFileProperties read(MemorySegment struct) {
    return new CuFileProperties(
        intAt(struct, "dstatusflags"), (intAt(struct, "dcontrolflags") & COMPAT_MODE) != 0);
  }

  /// Whether NVMe disks write into device memory without nvidia-fs.
  public boolean hasPeerToPeerNvme() {
    return (storageFlags & NVME_PEER_TO_PEER) != 0;
  }

  private static int intAt(MemorySegment struct, String field) {
    return struct.get(JAVA_INT, LAYOUT.byteOffset(PathElement.groupElement(field)));
  }
}
