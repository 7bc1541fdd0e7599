// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.stream.IntStream;

/// Sets the settings of `cufile.json` by calls (from libcufile 1.14 on), which take precedence over
/// `CUFILE_ENV_PATH_JSON` and `/etc/cufile.json`. They can be set only before the driver opens. A getter returns the
/// value to come before the driver opens, and afterwards the value in force. Thread-safe.
public final class CuFileParameters {
  private static final int TEXT_BYTES = 4096;

  /// The constants of `CUFileSizeTConfigParameter_t`, without `CUFILE_PARAM_`.
  public enum Size {
    PROFILE_STATS(0),
    EXECUTION_MAX_IO_QUEUE_DEPTH(1),
    EXECUTION_MAX_IO_THREADS(2),
    EXECUTION_MIN_IO_THRESHOLD_SIZE_KB(3),
    EXECUTION_MAX_REQUEST_PARALLELISM(4),
    PROPERTIES_MAX_DIRECT_IO_SIZE_KB(5),
    PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB(6),
    PROPERTIES_PER_BUFFER_CACHE_SIZE_KB(7),
    PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB(8),
    PROPERTIES_IO_BATCHSIZE(9),
    POLLTHRESHOLD_SIZE_KB(10),
    PROPERTIES_BATCH_IO_TIMEOUT_MS(11);

    private final int value;

    Size(int value) {
      this.value = value;
    }

    int value() {
      return value;
    }
  }

  /// The constants of `CUFileBoolConfigParameter_t`, without `CUFILE_PARAM_`.
  public enum Flag {
    PROPERTIES_USE_POLL_MODE(0),
    PROPERTIES_ALLOW_COMPAT_MODE(1),
    FORCE_COMPAT_MODE(2),
    FS_MISC_API_CHECK_AGGRESSIVE(3),
    EXECUTION_PARALLEL_IO(4),
    PROFILE_NVTX(5),
    PROPERTIES_ALLOW_SYSTEM_MEMORY(6),
    USE_PCIP2PDMA(7),
    PREFER_IO_URING(8),
    FORCE_ODIRECT_MODE(9),
    SKIP_TOPOLOGY_DETECTION(10),
    STREAM_MEMOPS_BYPASS(11),
    PROPERTIES_POSIX_IO_MODE(12),
    GDS_FALLBACK_IO(13);

    private final int value;

    Flag(int value) {
      this.value = value;
    }

    int value() {
      return value;
    }

    /// Whether a version of libcufile, 1.14 or later, has the flag.
    boolean isIn(CuFile.Version version) {
      return value < PROPERTIES_POSIX_IO_MODE.value || version.isSince(1, 19);
    }
  }

  /// The constants of `CUFileStringConfigParameter_t`, without `CUFILE_PARAM_`.
  public enum Text {
    LOGGING_LEVEL(0),
    ENV_LOGFILE_PATH(1),
    LOG_DIR(2),
    RDMA_TRANSPORT(3);

    private final int value;

    Text(int value) {
      this.value = value;
    }

    int value() {
      return value;
    }

    /// Whether a version of libcufile, 1.14 or later, has the text.
    boolean isIn(CuFile.Version version) {
      return this != RDMA_TRANSPORT || version.isSince(1, 19);
    }
  }

  /// The values that a [Size] may have.
  public record Range(long least, long most) {}

  /// Bounce buffers of one size. For I/O through the CPU: `CUFILE_PARAM_POSIX_POOL_SLAB_SIZE_KB` and
  /// `CUFILE_PARAM_POSIX_POOL_SLAB_COUNT`; on GPUs: `CUFILE_PARAM_GPU_BOUNCE_BUFFER_SLAB_SIZE_KB` and
  /// `CUFILE_PARAM_GPU_BOUNCE_BUFFER_SLAB_COUNT`.
  public record PoolSlab(long kib, long count) {}

  private final NativeLibrary library;

  private CuFileParameters(NativeLibrary library) {
    this.library = library;
  }

  static Availability<CuFileParameters> of(CuFile cuFile) {
    NativeLibrary library = CuFileLimits.library(cuFile);
    String first = "cuFileSetParameterBool";
    return library.has(first)
        ? Availability.present(new CuFileParameters(library))
        : Availability.absent(library.name() + " has no " + first);
  }

  // CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value)
  public void set(Flag parameter, boolean value) {
    function("cuFileSetParameterBool", JAVA_INT, JAVA_BOOLEAN)
        .call(parameter + " = " + value, parameter.value, value);
  }

  // CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool *value)
  public boolean get(Flag parameter) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment value = arena.allocate(JAVA_BYTE);
      function("cuFileGetParameterBool", JAVA_INT, ADDRESS)
          .call(parameter.name(), parameter.value, value);
      return value.get(JAVA_BYTE, 0) != 0;
    }
  }

  // CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t value)
  public void set(Size parameter, long value) {
    function("cuFileSetParameterSizeT", JAVA_INT, JAVA_LONG)
        .call(parameter + " = " + value, parameter.value, value);
  }

  // CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t *value)
  public long get(Size parameter) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment value = arena.allocate(JAVA_LONG);
      function("cuFileGetParameterSizeT", JAVA_INT, ADDRESS)
          .call(parameter.name(), parameter.value, value);
      return value.get(JAVA_LONG, 0);
    }
  }

  /// The range of a parameter; absent before libcufile 1.15. libcufile accepts values outside the range when they are
  /// set, and refuses them when the driver opens.
  // CUfileError_t cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t param,
  //                                             size_t *min_value, size_t *max_value)
  public Availability<Range> range(Size parameter) {
    return CuFileFunction.find(library, "cuFileGetParameterMinMaxValue", JAVA_INT, ADDRESS, ADDRESS)
        .then(function -> {
          try (Arena arena = Arena.ofConfined()) {
            MemorySegment least = arena.allocate(JAVA_LONG);
            MemorySegment most = arena.allocate(JAVA_LONG);
            function.call(parameter.name(), parameter.value, least, most);
            return Availability.present(new Range(least.get(JAVA_LONG, 0), most.get(JAVA_LONG, 0)));
          }
        });
  }

  // CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t param,
  //                                        const char* desc_str)
  public void set(Text parameter, String value) {
    try (Arena arena = Arena.ofConfined()) {
      function("cuFileSetParameterString", JAVA_INT, ADDRESS)
          .call(parameter + " = " + value, parameter.value, arena.allocateFrom(value));
    }
  }

  // CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t param, char *desc_str,
  //                                        int len)
  public String get(Text parameter) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment value = arena.allocate(TEXT_BYTES);
      function("cuFileGetParameterString", JAVA_INT, ADDRESS, JAVA_INT)
          .call(parameter.name(), parameter.value, value, TEXT_BYTES);
      return value.getString(0);
    }
  }

  // CUfileError_t cuFileSetParameterPosixPoolSlabArray(const size_t *size_values,
  //                                                    const size_t *count_values, int len)
  public void setPool(List<PoolSlab> slabs) {
    set("cuFileSetParameterPosixPoolSlabArray", slabs);
  }

  /// @param kinds the number of sizes, which the caller must know
  // CUfileError_t cuFileGetParameterPosixPoolSlabArray(size_t *size_values, size_t *count_values,
  //                                                    int len)
  public List<PoolSlab> pool(int kinds) {
    return slabs("cuFileGetParameterPosixPoolSlabArray", kinds);
  }

  /// From libcufile 1.17 on.
  // CUfileError_t cuFileSetParameterGpuBounceBufferSlabArray(const size_t *size_values,
  //                                                          const size_t *count_values, int len)
  public void setGpuPool(List<PoolSlab> slabs) {
    set("cuFileSetParameterGpuBounceBufferSlabArray", slabs);
  }

  /// From libcufile 1.17 on.
  ///
  /// @param kinds the number of sizes that were set
  // CUfileError_t cuFileGetParameterGpuBounceBufferSlabArray(size_t *size_values,
  //                                                          size_t *count_values, int len)
  public List<PoolSlab> gpuPool(int kinds) {
    return slabs("cuFileGetParameterGpuBounceBufferSlabArray", kinds);
  }

  private void set(String symbol, List<PoolSlab> slabs) {
    try (Arena arena = Arena.ofConfined()) {
      function(symbol, ADDRESS, ADDRESS, JAVA_INT)
          .call(
              slabs.toString(),
              arena.allocateFrom(JAVA_LONG, slabs.stream().mapToLong(PoolSlab::kib).toArray()),
              arena.allocateFrom(JAVA_LONG, slabs.stream().mapToLong(PoolSlab::count).toArray()),
              slabs.size());
    }
  }

  private List<PoolSlab> slabs(String symbol, int kinds) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment kib = arena.allocate(JAVA_LONG, kinds);
      MemorySegment count = arena.allocate(JAVA_LONG, kinds);
      function(symbol, ADDRESS, ADDRESS, JAVA_INT)
          .call(kinds + " kinds of slab", kib, count, kinds);
      return IntStream.range(0, kinds)
          .mapToObj(i -> new PoolSlab(kib.getAtIndex(JAVA_LONG, i), count.getAtIndex(JAVA_LONG, i)))
          .toList();
    }
  }

  private CuFileFunction function(String symbol, MemoryLayout... arguments) {
    return CuFileLimits.function(library, symbol, arguments);
  }
}
