// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Function;

/// libcufile's own counts, for the whole process (libcufile 1.15 on): at level 1 operations and bytes,
/// at level 2 also sizes, at level 3 also the way that they took, by GPU. Thread-safe.
public final class CuFileStatistics {
  private static final int MOST_GPUS = 16;
  private static final int BUCKETS = 32;

  /// Room for the structs of versions to come.
  private static final long ROOM_BYTES = 64 << 10;

  /// `CUfileOpCounter_t`
  public record Counter(long ok, long failed) {}

  /// Reads, or writes.
  public record Traffic(
      long bytes,
      long bytesPerSecond,
      long averageMicros,
      long operationsPerSecond,
      long sumMicros) {}

  /// `CUfileStatsLevel1_t`
  public record Level1(
      Counter reads,
      Counter writes,
      Counter handlesRegistered,
      Counter handlesDeregistered,
      Counter buffersRegistered,
      Counter buffersDeregistered,
      Traffic read,
      Traffic written,
      Batches batches) {}

  /// The batch API's part of `CUfileStatsLevel1_t`.
  ///
  /// @param posixEnqueued entries that go through the CPU
  public record Batches(
      Counter submitted,
      Counter completed,
      Counter setUp,
      Counter cancelled,
      Counter destroyed,
      Counter enqueued,
      Counter posixEnqueued,
      Counter processed,
      Counter posixProcessed,
      Counter byNvidiaFs,
      Counter byPeerToPeer,
      Counter byAio,
      Counter byIoUring,
      Counter mixed,
      Counter submittedInAll,
      long bytesRead,
      long bytesWritten,
      long bytesReadPerSecond,
      long bytesWrittenPerSecond,
      long submitAverageMicros,
      long completionAverageMicros,
      long submitsPerSecond,
      long completionsPerSecond,
      long submitSumMicros,
      long completionSumMicros,
      long lastBytesRead,
      long lastBytesWritten) {}

  /// `CUfileStatsLevel2_t`
  ///
  /// @param readSizes how many reads by size, a bucket for each power of two
  public record Level2(Level1 basic, List<Long> readSizes, List<Long> writeSizes) {}

  /// The way of a GPU's reads, or writes. Writes have no holes and no inline regions.
  ///
  /// @param peerToPeer from the disk, without nvidia-fs
  /// @param nvidiaFs from the disk, by nvidia-fs
  /// @param posix through the CPU
  /// @param unaligned through a bounce buffer
  /// @param routed by way of another GPU
  public record Ways(
      long bytes,
      long bytesPerSecond,
      long utilization,
      long durationMicros,
      long operations,
      long peerToPeer,
      long nvidiaFs,
      long posix,
      long unaligned,
      long routed,
      long holes,
      long inline,
      long failed) {}

  /// `CUfilePerGpuStats_t`
  ///
  /// @param uuid in hexadecimal digits
  /// @param mappings of buffers that were registered
  public record Gpu(
      String uuid,
      Ways reads,
      Ways writes,
      Counter mappings,
      long mappingsTried,
      long mappingsFreed,
      long registeredBytes) {}

  /// `CUfileStatsLevel3_t`
  public record Level3(Level2 detailed, List<Gpu> gpus) {}

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

  /// @param level 0 for none, to 3
  // CUfileError_t cuFileSetStatsLevel(int level)
  public void setLevel(int level) {
    function("cuFileSetStatsLevel", JAVA_INT).call("level " + level, level);
  }

  // CUfileError_t cuFileGetStatsLevel(int *level)
  public int level() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment level = arena.allocate(JAVA_INT);
      function("cuFileGetStatsLevel", ADDRESS).call("level", level);
      return level.get(JAVA_INT, 0);
    }
  }

  /// Counts from now on; the driver must be open and the level set.
  // CUfileError_t cuFileStatsStart(void)
  public void start() {
    function("cuFileStatsStart").call(library.name());
  }

  // CUfileError_t cuFileStatsStop(void)
  public void stop() {
    function("cuFileStatsStop").call(library.name());
  }

  // CUfileError_t cuFileStatsReset(void)
  public void reset() {
    function("cuFileStatsReset").call(library.name());
  }

  // CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats)
  public Level1 level1() {
    return get("cuFileGetStatsL1", CuFileStatistics::level1);
  }

  // CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *stats)
  public Level2 level2() {
    return get("cuFileGetStatsL2", CuFileStatistics::level2);
  }

  // CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *stats)
  public Level3 level3() {
    return get("cuFileGetStatsL3", CuFileStatistics::level3);
  }

  private <T> T get(String symbol, Function<Words, T> read) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment struct = arena.allocate(ROOM_BYTES, Long.BYTES);
      function(symbol, ADDRESS).call(library.name(), struct);
      return read.apply(new Words(struct));
    }
  }

  private CuFileFunction function(String symbol, MemoryLayout... arguments) {
    return CuFileFunction.find(library, symbol, arguments).orElseThrow(IllegalStateException::new);
  }

  /// The structs are words of 64 bits, one after the other.
  private static final class Words {
    private final MemorySegment struct;
    private long at;

    Words(MemorySegment struct) {
      this.struct = struct;
    }

    long next() {
      long word = struct.get(JAVA_LONG, at);
      at += Long.BYTES;
      return word;
    }

    Counter counter() {
      return new Counter(next(), next());
    }

    List<Long> buckets() {
      List<Long> all = new ArrayList<>();
      for (int i = 0; i < BUCKETS; i++) {
        all.add(next());
      }
      return List.copyOf(all);
    }

    String uuid() {
      byte[] uuid = struct.asSlice(at, 16).toArray(JAVA_BYTE);
      at += uuid.length;
      return HexFormat.of().formatHex(uuid);
    }
  }

  private static Level1 level1(Words words) {
    Counter reads = words.counter();
    Counter writes = words.counter();
    Counter handlesRegistered = words.counter();
    Counter handlesDeregistered = words.counter();
    Counter buffersRegistered = words.counter();
    Counter buffersDeregistered = words.counter();
    // Each figure of the reads is followed by that of the writes.
    long[] read = new long[5];
    long[] written = new long[5];
    for (int i = 0; i < read.length; i++) {
      read[i] = words.next();
      written[i] = words.next();
    }
    return new Level1(
        reads,
        writes,
        handlesRegistered,
        handlesDeregistered,
        buffersRegistered,
        buffersDeregistered,
        new Traffic(read[0], read[1], read[2], read[3], read[4]),
        new Traffic(written[0], written[1], written[2], written[3], written[4]),
        batches(words));
  }

  private static Batches batches(Words words) {
    return new Batches(
        words.counter(),
        words.counter(),
        words.counter(),
        words.counter(),
        words.counter(),
        words.counter(),
        words.counter(),
        words.counter(),
        words.counter(),
        words.counter(),
        words.counter(),
        words.counter(),
        words.counter(),
        words.counter(),
        words.counter(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next());
  }

  private static Level2 level2(Words words) {
    return new Level2(level1(words), words.buckets(), words.buckets());
  }

  private static Level3 level3(Words words) {
    Level2 detailed = level2(words);
    int gpus = Math.clamp(words.next(), 0, MOST_GPUS);
    List<Gpu> all = new ArrayList<>();
    for (int i = 0; i < gpus; i++) {
      all.add(gpu(words));
    }
    return new Level3(detailed, List.copyOf(all));
  }

  private static Gpu gpu(Words words) {
    String uuid = words.uuid();
    Ways reads = ways(words, true);
    Ways writes = ways(words, false);
    long tried = words.next();
    Counter mappings = words.counter();
    return new Gpu(uuid, reads, writes, mappings, tried, words.next(), words.next());
  }

  private static Ways ways(Words words, boolean reads) {
    return new Ways(
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        reads ? words.next() : 0,
        reads ? words.next() : 0,
        words.next());
  }
}
