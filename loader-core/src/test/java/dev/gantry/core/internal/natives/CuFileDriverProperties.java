// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/// Properties of the open driver, as `cuFileDriverGetProperties` gives them.
///
/// @param fields the values of `CUfileDrvProps_t` by their names. `major_version` and `minor_version` are those of
///     nvidia-fs, 0 without it; sizes are in KiB, of memory on each device. A field that the library is too old to know
///     is 0
record CuFileDriverProperties(Map<String, Long> fields) {
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

  /// Room for larger structs of later versions: the library writes all fields that it knows.
  private static final long ROOM_BYTES = 4096;

  // CU_FILE_USE_POLL_MODE
  private static final int POLL_MODE = 1;

  /// Reads the properties of the open driver.
  // CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props)
  static CuFileDriverProperties of(CuFile cuFile) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment struct = arena.allocate(ROOM_BYTES, Long.BYTES);
      CuFileLimits.function(
              CuFileLimits.library(cuFile), "cuFileDriverGetProperties", ValueLayout.ADDRESS)
          .call(cuFile.libraryName(), struct);
      return read(struct);
    }
  }

  private static CuFileDriverProperties read(MemorySegment struct) {
    Map<String, Long> fields = new HashMap<>();
    for (MemoryLayout field : LAYOUT.memberLayouts()) {
      String name = field.name().orElseThrow();
      long offset = LAYOUT.byteOffset(PathElement.groupElement(name));
      fields.put(
          name,
          field.equals(JAVA_LONG.withName(name))
              ? struct.get(JAVA_LONG, offset)
              : (long) struct.get(JAVA_INT, offset));
    }
    return new CuFileDriverProperties(fields);
  }

  /// The value of a field of `CUfileDrvProps_t`.
  long get(String field) {
    return Objects.requireNonNull(fields.get(field));
  }

  /// Whether the library polls for the end of small requests.
  boolean polls() {
    return (get("dcontrolflags") & POLL_MODE) != 0;
  }
}
