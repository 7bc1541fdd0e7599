package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.util.EnumSet;
import java.util.OptionalInt;
import java.util.Set;

/// What `cuFileDriverGetProperties` tells of the open driver.
///
/// @param driverMajor of nvidia-fs, 0 where it is not loaded
/// @param driverMinor of nvidia-fs
/// @param pollThresholdKib largest request that is polled for
/// @param maxDirectIoKib largest request that is passed on in one piece
/// @param supported kinds of storage that can be reached directly
/// @param polls whether completions are polled for
/// @param allowsCompatMode whether the CPU may carry what cannot go directly
/// @param featureFlags `CUfileFeatureFlags_t` as bits
/// @param maxDeviceCacheKib bounce buffers on each GPU, together
/// @param perBufferCacheKib one bounce buffer
/// @param maxPinnedKib how much GPU memory may be registered
/// @param maxBatchSize entries of a batch; empty before libcufile 1.14
/// @param batchTimeoutMilliseconds empty before libcufile 1.14
public record CuFileProperties(
    int driverMajor,
    int driverMinor,
    long pollThresholdKib,
    long maxDirectIoKib,
    Set<Storage> supported,
    boolean polls,
    boolean allowsCompatMode,
    int featureFlags,
    long maxDeviceCacheKib,
    long perBufferCacheKib,
    long maxPinnedKib,
    OptionalInt maxBatchSize,
    OptionalInt batchTimeoutMilliseconds) {

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
  //   unsigned fflags, max_device_cache_size, per_buffer_cache_size, max_device_pinned_mem_size;
  //   unsigned max_batch_io_size, max_batch_io_timeout_msecs;  // seen in 1.14 and 1.15
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

  private static final int POLL_MODE = 1;
  private static final int COMPAT_MODE = 1 << 1;

  public CuFileProperties {
    supported = Set.copyOf(supported);
  }

  /// @param hasBatchFields whether the library is of a version whose struct is known to have them
  static CuFileProperties read(MemorySegment struct, boolean hasBatchFields) {
    int control = intAt(struct, "dcontrolflags");
    return new CuFileProperties(
        intAt(struct, "major_version"),
        intAt(struct, "minor_version"),
        longAt(struct, "poll_thresh_size"),
        longAt(struct, "max_direct_io_size"),
        storage(intAt(struct, "dstatusflags")),
        (control & POLL_MODE) != 0,
        (control & COMPAT_MODE) != 0,
        intAt(struct, "fflags"),
        Integer.toUnsignedLong(intAt(struct, "max_device_cache_size")),
        Integer.toUnsignedLong(intAt(struct, "per_buffer_cache_size")),
        Integer.toUnsignedLong(intAt(struct, "max_device_pinned_mem_size")),
        hasBatchFields ? OptionalInt.of(intAt(struct, "max_batch_io_size")) : OptionalInt.empty(),
        hasBatchFields
            ? OptionalInt.of(intAt(struct, "max_batch_io_timeout_msecs"))
            : OptionalInt.empty());
  }

  private static Set<Storage> storage(int flags) {
    Set<Storage> kinds = EnumSet.allOf(Storage.class);
    kinds.removeIf(kind -> (flags >>> kind.bit & 1) == 0);
    return kinds;
  }

  private static int intAt(MemorySegment struct, String field) {
    return struct.get(JAVA_INT, LAYOUT.byteOffset(PathElement.groupElement(field)));
  }

  private static long longAt(MemorySegment struct, String field) {
    return struct.get(JAVA_LONG, LAYOUT.byteOffset(PathElement.groupElement(field)));
  }
}
