// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.util.EnumSet;
import java.util.Set;

/// Properties of the open driver, as `cuFileDriverGetProperties` gives them.
///
/// @param supported kinds of storage that can be reached directly
/// @param allowsCompatMode whether bytes may be copied through the CPU if they cannot go directly
public record CuFileProperties(Set<Storage> supported, boolean allowsCompatMode) {

  /// `CUfileDriverStatusFlags_t`, by bit. 10 is not given out.
  public enum Storage {
    LUSTRE(0),
    WEKAFS(1),
    NFS(2),
    GPFS(3),
    NVME(4),
    NVME_OVER_FABRICS(5),
    SCSI(6),
    SCALEFLUX_CSD(7),
    NVMESH(8),
    BEEGFS(9),
    NVME_P2P(11),
    SCATEFS(12),
    VIRTIOFS(13);

    private final int bit;

    Storage(int bit) {
      this.bit = bit;
    }
  }

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

  private static final int COMPAT_MODE = 1 << 1;

  public CuFileProperties {
    supported = Set.copyOf(supported);
  }

  static CuFileProperties read(MemorySegment struct) {
    return new CuFileProperties(
        storage(intAt(struct, "dstatusflags")),
        (intAt(struct, "dcontrolflags") & COMPAT_MODE) != 0);
  }

  private static Set<Storage> storage(int flags) {
    Set<Storage> kinds = EnumSet.allOf(Storage.class);
    kinds.removeIf(kind -> (flags >>> kind.bit & 1) == 0);
    return kinds;
  }

  private static int intAt(MemorySegment struct, String field) {
    return struct.get(JAVA_INT, LAYOUT.byteOffset(PathElement.groupElement(field)));
  }
}
