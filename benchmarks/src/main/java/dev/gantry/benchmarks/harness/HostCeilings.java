// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.LongUnaryOperator;
import java.util.stream.Stream;
import java.util.zip.CRC32C;

/// Measures the ceilings of CPU, memory and disk with the JDK alone, without Gantry's code.
public final class HostCeilings {
  /// The size of a buffer that stays in a core's cache, so that reads cost as little as possible.
  private static final int CACHED_BYTES = 1 << 20;

  private static final int DIRECT_BYTES = 8 << 20;
  private static final int BLOCK_BYTES = 4096;
  private static final OpenOption DIRECT = direct();

  private HostCeilings() {}

  private static OpenOption direct() {
    try {
      // The class is found by its name, since javac warns of it.
      Class<?> options = Class.forName("com.sun.nio.file.ExtendedOpenOption");
      return (OpenOption) Objects.requireNonNull(options.getField("DIRECT").get(null));
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("the JDK has no option for O_DIRECT", e);
    }
  }

  /// Copies memory, in parts of equal size by each thread.
  ///
  /// @param bytes to copy; twice as many are allocated
  public static Contender memoryCopy(int threads, long bytes) {
    long each = bytes / threads;
    Threads pool = new Threads(threads);
    Arena arena = Arena.ofShared();
    MemorySegment from = arena.allocate(each * threads, BLOCK_BYTES).fill((byte) 1);
    MemorySegment to = arena.allocate(each * threads, BLOCK_BYTES);
    return Contender.of(
        "memory copy, " + Threads.count(threads),
        () -> pool.run(thread -> MemorySegment.copy(from, thread * each, to, thread * each, each)),
        pool::close,
        arena::close);
  }

  /// Reads a file into one small buffer a thread, over and over.
  public static Contender pageCache(Path file, int threads) {
    return reading("page cache", List.of(file), threads, CACHED_BYTES, Set.of(), _ -> {});
  }

  /// Reads a file past the page cache.
  public static Contender directRead(Path file, int threads) {
    return reading("O_DIRECT read", List.of(file), threads, DIRECT_BYTES, Set.of(DIRECT), _ -> {});
  }

  /// Reads files into one buffer a thread, over and over.
  public static Contender copy(List<Path> files, int threads, int bufferBytes) {
    String name = "copy to " + bufferBytes / 1000 + " kB";
    return reading(name, files, threads, bufferBytes, Set.of(), _ -> {});
  }

  /// Computes a checksum of the data in addition to reading it.
  public static Contender copyAndChecksum(List<Path> files, int threads, int bufferBytes) {
    return reading(
        "copy and CRC32C",
        files,
        threads,
        bufferBytes,
        Set.of(),
        buffer -> new CRC32C().update(buffer));
  }

  private static Contender reading(
      String name,
      List<Path> files,
      int threads,
      int bufferBytes,
      Set<OpenOption> options,
      Consumer<ByteBuffer> use) {
    Threads pool = new Threads(threads);
    List<ByteBuffer> buffers = buffers(threads, bufferBytes);
    return Contender.of(
        name + ", " + Threads.count(threads),
        () -> {
          for (Path file : files) {
            try (FileChannel channel = FileChannel.open(file, options)) {
              pool.run(
                  channel.size(),
                  bufferBytes,
                  (thread, from, to) -> {
                    // A direct read must ask for whole blocks, also past the file's end.
                    ByteBuffer buffer = buffers.get(thread).clear();
                    read(channel, buffer, from, (int) (to - from));
                    use.accept(buffer.flip());
                  });
            }
          }
        },
        pool::close);
  }

  /// Reads at least `length` bytes at an offset, and at most as many as fit.
  ///
  /// @throws IOException if the file ends earlier
  public static void read(FileChannel channel, ByteBuffer buffer, long offset, int length)
      throws IOException {
    int start = buffer.position();
    while (buffer.position() - start < length) {
      if (channel.read(buffer, offset + buffer.position() - start) < 0) {
        throw new IOException("the file has become shorter");
      }
    }
  }

  /// Writes a file past the page cache, until it is on the disk.
  ///
  /// @param file is made by each run, and removed after it
  public static Contender directWrite(Path file, int threads, long bytes) {
    return writing("O_DIRECT write and sync, ", file, threads, bytes, Set.of(DIRECT));
  }

  /// Writes a file through the page cache, until it is on the disk.
  ///
  /// @param file is made by each run, and removed after it
  public static Contender cachedWrite(Path file, int threads, long bytes) {
    return writing("write and sync, ", file, threads, bytes, Set.of());
  }

  private static Contender writing(
      String name, Path file, int threads, long bytes, Set<OpenOption> how) {
    Set<OpenOption> options = new HashSet<>(how);
    options.addAll(Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE));
    Threads pool = new Threads(threads);
    List<ByteBuffer> buffers = buffers(threads, DIRECT_BYTES);
    long seed = 88172645463325252L;
    for (ByteBuffer buffer : buffers) {
      var _ = RandomCheckpoint.fill(buffer, LongUnaryOperator.identity(), seed++);
    }
    return Contender.timed(
        name + Threads.count(threads),
        "",
        () -> {
          try (FileChannel channel = FileChannel.open(file, options)) {
            return Contender.seconds(() -> {
              pool.run(
                  bytes / BLOCK_BYTES * BLOCK_BYTES,
                  DIRECT_BYTES,
                  (thread, from, to) ->
                      write(channel, buffers.get(thread), from, (int) (to - from)));
              channel.force(true);
            });
          } finally {
            Files.deleteIfExists(file);
          }
        },
        pool::close);
  }

  private static void write(FileChannel channel, ByteBuffer buffer, long offset, int length)
      throws IOException {
    buffer.clear().limit(length);
    // No block is like another.
    for (int block = 0; block < length; block += BLOCK_BYTES) {
      buffer.putLong(block, offset + block);
    }
    while (buffer.hasRemaining()) {
      channel.write(buffer, offset + buffer.position());
    }
  }

  private static List<ByteBuffer> buffers(int count, int bytes) {
    return Stream.generate(() ->
            ByteBuffer.allocateDirect(bytes + BLOCK_BYTES)
                .alignedSlice(BLOCK_BYTES)
                .limit(bytes)
                .slice()
                .order(ByteOrder.LITTLE_ENDIAN))
        .limit(count)
        .toList();
  }
}
