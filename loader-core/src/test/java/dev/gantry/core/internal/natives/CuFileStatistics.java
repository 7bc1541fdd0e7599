// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/// libcufile's own counts, for the whole process (from libcufile 1.15 on). Level 1 counts operations and bytes, level 2
/// also sizes, level 3 also the ways that the bytes took, by GPU. Thread-safe.
///
/// The structs have grown, so they are read by the [Layout] of the library's version. Only what all layouts have in
/// common is read of a version that is newer than those, or that writes more than its layout has;
/// [Counts#unread] says so.
public final class CuFileStatistics {
  private static final List<String> GETTERS =
      List.of("cuFileGetStatsL1", "cuFileGetStatsL2", "cuFileGetStatsL3");

  private static final int MAX_GPUS = 16;
  private static final int BUCKETS = 32;
  private static final int UUID_WORDS = 2;

  /// Room for larger structs of later versions.
  private static final long ROOM_BYTES = 64 << 10;

  /// The words of `CUfileStatsLevel1_t`. A name with a star is a `CUfileOpCounter_t` of two words: the operations that
  /// succeeded and those that failed. The `posix` ones are entries of batches that go through the CPU.
  private static final List<String> LEVEL_1 =
      words(
          """
          reads* writes* handlesRegistered* handlesDeregistered* buffersRegistered*
          buffersDeregistered* read.bytes written.bytes read.bytesPerSecond written.bytesPerSecond
          read.averageMicros written.averageMicros read.operationsPerSecond
          written.operationsPerSecond read.sumMicros written.sumMicros
          batches.submitted* batches.completed* batches.setUp* batches.cancelled* batches.destroyed*
          batches.enqueued* batches.posixEnqueued* batches.processed* batches.posixProcessed*
          batches.byNvidiaFs* batches.byPeerToPeer* batches.byAio* batches.byIoUring*
          batches.mixed* batches.submittedInAll* batches.bytesRead batches.bytesWritten
          batches.bytesReadPerSecond batches.bytesWrittenPerSecond batches.submitAverageMicros
          batches.completionAverageMicros batches.submitsPerSecond batches.completionsPerSecond
          batches.submitSumMicros batches.completionSumMicros batches.lastBytesRead
          batches.lastBytesWritten
          """);

  /// The words of `CUfilePerGpuStats_t` after the GPU's UUID: the ways that its reads and writes took (from the disk
  /// without nvidia-fs, by nvidia-fs, through the CPU, through a bounce buffer, or by another GPU), and the mappings of
  /// registered buffers. Writes have no holes and no inline regions.
  private static final List<String> GPU =
      words(
          """
          reads.bytes reads.bytesPerSecond reads.utilization reads.durationMicros reads.operations
          reads.peerToPeer reads.nvidiaFs reads.posix reads.unaligned reads.routed reads.holes
          reads.inline reads.failed writes.bytes writes.bytesPerSecond writes.utilization
          writes.durationMicros writes.operations writes.peerToPeer writes.nvidiaFs writes.posix
          writes.unaligned writes.routed writes.failed mappingsTried mappings* mappingsFreed
          registeredBytes
          """);

  /// The words that libcufile 1.19 adds to `CUfileStatsLevel1_t`, behind those of 1.15.
  private static final List<String> VECTORED =
      words(
          """
          vectoredReads* vectoredWrites* vectoredRead.bytes vectoredWritten.bytes
          vectoredRead.bytesPerSecond vectoredWritten.bytesPerSecond vectoredRead.averageMicros
          vectoredWritten.averageMicros vectoredRead.operationsPerSecond
          vectoredWritten.operationsPerSecond vectoredRead.sumMicros vectoredWritten.sumMicros
          """);

  /// The layouts of the structs, each from a version of libcufile on, the newest last. The structs of a level begin with
  /// those of the level below.
  enum Layout {
    /// CUDA 13.0 to 13.3.
    SINCE_1_15(15, LEVEL_1),
    /// CUDA 13.4.
    SINCE_1_19(19, Stream.of(LEVEL_1, VECTORED).flatMap(List::stream).toList());

    private final int minor;

    @SuppressWarnings("ImmutableEnumChecker") // Stream.toList makes both.
    private final List<String> basic;

    Layout(int minor, List<String> basic) {
      this.minor = minor;
      this.basic = basic;
    }

    /// The layout of a version; absent if the version is newer than all headers that were read.
    static Availability<Layout> of(CuFile.Version version) {
      if (version.isNewerThanKnown()) {
        return Availability.absent(
            "libcufile "
                + version
                + " is newer than "
                + CuFile.Version.NEWEST
                + ", whose header was read");
      }
      return Availability.present(
          Stream.of(values())
              .filter(layout -> layout.minor <= version.minor())
              .reduce(SINCE_1_15, (_, newer) -> newer));
    }

    /// The number of 8-byte words in the struct of a level.
    int words(int level) {
      return switch (level) {
        case 1 -> basic.size();
        case 2 -> basic.size() + 2 * BUCKETS;
        default -> words(2) + 1 + MAX_GPUS * (UUID_WORDS + GPU.size());
      };
    }
  }

  private static List<String> words(String names) {
    return Stream.of(names.strip().split("\\s+"))
        .flatMap(name ->
            name.endsWith("*")
                ? Stream.of(name.replace("*", ".ok"), name.replace("*", ".failed"))
                : Stream.of(name))
        .toList();
  }

  /// The counts that were read.
  ///
  /// @param unread why only the words of libcufile 1.15's level 1 were read; empty if all were
  /// @param totals the counts by their names, such as `reads.ok` and `read.bytes`
  /// @param readSizes the number of reads in each bucket of sizes, one for each power of two; empty at level 1
  /// @param writeSizes the same for writes
  /// @param gpus empty below level 3
  public record Counts(
      String unread,
      Map<String, Long> totals,
      List<Long> readSizes,
      List<Long> writeSizes,
      List<Gpu> gpus) {}

  /// The counts of one GPU.
  ///
  /// @param uuid the GPU's UUID in hexadecimal digits
  /// @param totals the counts by their names, such as `reads.peerToPeer`
  public record Gpu(String uuid, Map<String, Long> totals) {}

  /// The bytes of the memory behind a layout's struct, so that a library that writes there is
  /// seen.
  private static final long UNTOUCHED = 0xa5a5a5a5a5a5a5a5L;

  private final NativeLibrary library;
  private final Availability<Layout> layout;

  private CuFileStatistics(NativeLibrary library, Availability<Layout> layout) {
    this.library = library;
    this.layout = layout;
  }

  static Availability<CuFileStatistics> of(CuFile cuFile) {
    NativeLibrary library = CuFileLimits.library(cuFile);
    String last = GETTERS.getLast();
    return library.has(last)
        ? Availability.present(new CuFileStatistics(library, cuFile.version().then(Layout::of)))
        : Availability.absent(library.name() + " has no " + last);
  }

  /// @param level 0 (no counts) to 3
  // CUfileError_t cuFileSetStatsLevel(int level)
  public void setLevel(int level) {
    CuFileLimits.function(library, "cuFileSetStatsLevel", JAVA_INT).call("level " + level, level);
  }

  // CUfileError_t cuFileGetStatsLevel(int *level)
  public int level() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment level = arena.allocate(JAVA_INT);
      CuFileLimits.function(library, "cuFileGetStatsLevel", ADDRESS).call("level", level);
      return level.get(JAVA_INT, 0);
    }
  }

  /// Begins to count. The driver must be open and the level set.
  // CUfileError_t cuFileStatsStart(void)
  public void start() {
    CuFileLimits.function(library, "cuFileStatsStart").call(library.name());
  }

  // CUfileError_t cuFileStatsStop(void)
  public void stop() {
    CuFileLimits.function(library, "cuFileStatsStop").call(library.name());
  }

  // CUfileError_t cuFileStatsReset(void)
  public void reset() {
    CuFileLimits.function(library, "cuFileStatsReset").call(library.name());
  }

  /// Reads the counts so far.
  ///
  /// @param level 1 to 3
  // CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats), and the same for the other levels
  public Counts counts(int level) {
    return switch (layout) {
      case Availability.Absent<Layout>(String reason) -> common(level, reason);
      case Availability.Present<Layout>(Layout known) -> counts(level, known);
    };
  }

  private Counts counts(int level, Layout known) {
    try (Arena arena = Arena.ofConfined()) {
      long end = (long) known.words(level) * Long.BYTES;
      MemorySegment struct = arena.allocate(ROOM_BYTES, Long.BYTES);
      MemorySegment behind = struct.asSlice(end).fill((byte) UNTOUCHED);
      call(level, struct);
      if (behind.get(JAVA_LONG, 0) != UNTOUCHED) {
        return common(level, "libcufile writes more than the layout " + known + " has");
      }
      int sizes = known.words(1);
      return new Counts(
          "",
          named(struct, 0, known.basic),
          level < 2 ? List.of() : buckets(struct, sizes),
          level < 2 ? List.of() : buckets(struct, sizes + BUCKETS),
          level < 3 ? List.of() : gpus(struct, known.words(2)));
    }
  }

  /// Reads what all layouts have in common.
  private Counts common(int level, String unread) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment struct = arena.allocate(ROOM_BYTES, Long.BYTES);
      call(level, struct);
      return new Counts(unread, named(struct, 0, LEVEL_1), List.of(), List.of(), List.of());
    }
  }

  private void call(int level, MemorySegment struct) {
    CuFileLimits.function(library, GETTERS.get(level - 1), ADDRESS).call(library.name(), struct);
  }

  private static List<Gpu> gpus(MemorySegment struct, int at) {
    int count = Math.clamp(struct.get(JAVA_INT, (long) at * Long.BYTES), 0, MAX_GPUS);
    List<Gpu> all = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int from = at + 1 + i * (UUID_WORDS + GPU.size());
      byte[] uuid =
          struct.asSlice((long) from * Long.BYTES, UUID_WORDS * Long.BYTES).toArray(JAVA_BYTE);
      all.add(new Gpu(HexFormat.of().formatHex(uuid), named(struct, from + UUID_WORDS, GPU)));
    }
    return List.copyOf(all);
  }

  private static Map<String, Long> named(MemorySegment struct, int from, List<String> names) {
    Map<String, Long> named = new LinkedHashMap<>();
    for (int i = 0; i < names.size(); i++) {
      named.put(names.get(i), struct.getAtIndex(JAVA_LONG, from + i));
    }
    return named;
  }

  private static List<Long> buckets(MemorySegment struct, int from) {
    return LongStream.range(from, from + BUCKETS)
        .mapToObj(at -> struct.getAtIndex(JAVA_LONG, at))
        .toList();
  }
}
