package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.gantry.core.DeviceUnavailableException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/// libcufile's own count of its I/O (1.15 on): the proof of which way the bytes went. Each level
/// has all of the lower ones and costs more. Thread-safe.
public final class CuFileStatistics {
  /// How often an operation succeeded and failed.
  public record Operations(long succeeded, long failed) {}

  /// Level 1, without the counts of batches.
  public record Totals(
      Operations reads,
      Operations writes,
      Operations handleRegistrations,
      Operations handleDeregistrations,
      Operations bufferRegistrations,
      Operations bufferDeregistrations,
      long bytesRead,
      long bytesWritten) {}

  /// Reads or writes of one GPU by the way that they took.
  ///
  /// @param peerToPeer by PCIe peer-to-peer DMA, without nvidia-fs
  /// @param nvidiaFs directly, by nvidia-fs
  /// @param posix through the CPU
  /// @param unaligned of any way, with a size, offset or address that is no multiple of 4 KiB
  public record Ways(
      long bytes,
      long total,
      long peerToPeer,
      long nvidiaFs,
      long posix,
      long unaligned,
      long failed) {}

  /// One GPU.
  ///
  /// @param uuid 32 hexadecimal digits
  /// @param registeredBytes memory that is registered now
  public record Gpu(String uuid, Ways reads, Ways writes, long registeredBytes) {}

  // CUfileStatsLevel1_t: 6 counters {ok, err}, read_bytes, write_bytes, 8 rates and latencies, 15
  // counters and 12 values of batches.
  private static final long READ_BYTES = 6 * 16;
  private static final long LEVEL_1_BYTES = READ_BYTES + 10 * 8 + 15 * 16 + 12 * 8;
  // CUfileStatsLevel2_t: level 1, uint64_t read_size_kb_hist[32], write_size_kb_hist[32].
  private static final int BUCKETS = 32;
  private static final long LEVEL_2_BYTES = LEVEL_1_BYTES + 2 * BUCKETS * 8;
  // CUfileStatsLevel3_t: level 2, uint32_t num_gpus, CUfilePerGpuStats_t per_gpu_stats[16].
  private static final long GPUS = LEVEL_2_BYTES + 8;
  private static final int MOST_GPUS = 16;
  // CUfilePerGpuStats_t: char uuid[16]; of reads: bytes, 3 rates, n_total, n_p2p, n_nvfs, n_posix,
  // n_unaligned, n_dr, 2 kinds of regions, n_err; of writes the same without regions; n_mmap,
  // n_mmap_ok, n_mmap_err, n_mmap_free, reg_bytes.
  private static final int UUID_BYTES = 16;
  private static final long READS = UUID_BYTES;
  private static final long WRITES = READS + 13 * 8;
  private static final long REGISTERED_BYTES = WRITES + 11 * 8 + 4 * 8;
  private static final long GPU_BYTES = REGISTERED_BYTES + 8;
  // Room for the structs of versions to come: the library writes as much as it knows.
  private static final long ROOM_BYTES = 1 << 16;

  private static final String SUBJECT = "statistics";

  private final NativeLibrary library;

  private CuFileStatistics(NativeLibrary library) {
    this.library = library;
  }

  static Availability<CuFileStatistics> bind(NativeLibrary library) {
    String last = "cuFileGetStatsL3";
    return library.has(last)
        ? Availability.present(new CuFileStatistics(library))
        : Availability.absent(library.name() + " has no " + last);
  }

  // CUfileError_t cuFileSetStatsLevel(int level)
  /// To be called before [#start].
  ///
  /// @param level 0 (off) to 3
  public void setLevel(int level) {
    function("cuFileSetStatsLevel", JAVA_INT).call("level " + level, level);
  }

  // CUfileError_t cuFileGetStatsLevel(int *level)
  public int level() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment level = arena.allocate(JAVA_INT);
      function("cuFileGetStatsLevel", ADDRESS).call(SUBJECT, level);
      return level.get(JAVA_INT, 0);
    }
  }

  // CUfileError_t cuFileStatsStart(void)
  public void start() {
    function("cuFileStatsStart").call(SUBJECT);
  }

  // CUfileError_t cuFileStatsStop(void)
  public void stop() {
    function("cuFileStatsStop").call(SUBJECT);
  }

  // CUfileError_t cuFileStatsReset(void)
  public void reset() {
    function("cuFileStatsReset").call(SUBJECT);
  }

  // CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats)
  public Totals totals() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment stats = fill(arena, "cuFileGetStatsL1");
      return new Totals(
          operations(stats, 0),
          operations(stats, 1),
          operations(stats, 2),
          operations(stats, 3),
          operations(stats, 4),
          operations(stats, 5),
          stats.get(JAVA_LONG, READ_BYTES),
          stats.get(JAVA_LONG, READ_BYTES + 8));
    }
  }

  // CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *stats)
  /// How many reads were of which size, in 32 buckets of growing KiB.
  public List<Long> readSizes() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment stats = fill(arena, "cuFileGetStatsL2");
      List<Long> buckets = new ArrayList<>(BUCKETS);
      for (int i = 0; i < BUCKETS; i++) {
        buckets.add(stats.get(JAVA_LONG, LEVEL_1_BYTES + i * 8L));
      }
      return List.copyOf(buckets);
    }
  }

  // CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *stats)
  /// Each GPU that libcufile knows, in its order.
  public List<Gpu> gpus() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment stats = fill(arena, "cuFileGetStatsL3");
      int count = Math.clamp(stats.get(JAVA_INT, LEVEL_2_BYTES), 0, MOST_GPUS);
      List<Gpu> gpus = new ArrayList<>(count);
      for (int i = 0; i < count; i++) {
        MemorySegment gpu = stats.asSlice(GPUS + i * GPU_BYTES, GPU_BYTES);
        byte[] uuid = gpu.asSlice(0, UUID_BYTES).toArray(JAVA_BYTE);
        gpus.add(
            new Gpu(
                HexFormat.of().formatHex(uuid),
                ways(gpu, READS, 12),
                ways(gpu, WRITES, 10),
                gpu.get(JAVA_LONG, REGISTERED_BYTES)));
      }
      return List.copyOf(gpus);
    }
  }

  private MemorySegment fill(Arena arena, String symbol) {
    MemorySegment stats = arena.allocate(ROOM_BYTES, Long.BYTES);
    function(symbol, ADDRESS).call(SUBJECT, stats);
    return stats;
  }

  private static Operations operations(MemorySegment stats, int index) {
    return new Operations(stats.get(JAVA_LONG, index * 16L), stats.get(JAVA_LONG, index * 16L + 8));
  }

  private static Ways ways(MemorySegment gpu, long start, int failedIndex) {
    return new Ways(
        gpu.get(JAVA_LONG, start),
        gpu.get(JAVA_LONG, start + 4 * 8),
        gpu.get(JAVA_LONG, start + 5 * 8),
        gpu.get(JAVA_LONG, start + 6 * 8),
        gpu.get(JAVA_LONG, start + 7 * 8),
        gpu.get(JAVA_LONG, start + 8 * 8),
        gpu.get(JAVA_LONG, start + failedIndex * 8L));
  }

  private CuFileFunction function(String symbol, MemoryLayout... arguments) {
    return CuFileFunction.find(library, symbol, arguments)
        .orElseThrow(DeviceUnavailableException::new);
  }
}
