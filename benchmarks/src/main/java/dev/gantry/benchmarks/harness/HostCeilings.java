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
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.LongUnaryOperator;
import java.util.zip.CRC32C;

/// What CPU, memory and disk can do, by the JDK alone and nothing of Gantry's.
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
    return new Contender() {
      private final Threads pool = new Threads(threads);
      private final Arena arena = Arena.ofShared();
      private final MemorySegment from = arena.allocate(each * threads, BLOCK_BYTES);
      private final MemorySegment to = arena.allocate(each * threads, BLOCK_BYTES);

      {
        from.fill((byte) 1);
      }

      @Override
      public String name() {
        return "memory copy, " + Threads.count(threads);
      }

      @Override
      public double run() throws Exception {
        long start = System.nanoTime();
        pool.run(thread -> MemorySegment.copy(from, thread * each, to, thread * each, each));
        return (System.nanoTime() - start) / 1e9;
      }

      @Override
      public void close() {
        pool.close();
        arena.close();
      }
    };
  }

  /// Reads a file into one small buffer a thread, over and over.
  public static Contender pageCache(Path file, int threads) {
    return new Reading("page cache", List.of(file), threads, CACHED_BYTES, Set.of(), _ -> {});
  }

  /// Reads a file past the page cache.
  public static Contender directRead(Path file, int threads) {
    return new Reading(
        "O_DIRECT read", List.of(file), threads, DIRECT_BYTES, Set.of(DIRECT), _ -> {});
  }

  /// Reads files into one buffer a thread, over and over.
  public static Contender copy(List<Path> files, int threads, int bufferBytes) {
    String name = "copy to " + bufferBytes / 1000 + " kB";
    return new Reading(name, files, threads, bufferBytes, Set.of(), _ -> {});
  }

  /// Takes a checksum of what is read besides.
  public static Contender copyAndChecksum(List<Path> files, int threads, int bufferBytes) {
    return new Reading(
        "copy and CRC32C",
        files,
        threads,
        bufferBytes,
        Set.of(),
        buffer -> new CRC32C().update(buffer));
  }

  /// Writes a file past the page cache, until it is on the disk.
  ///
  /// @param file is made by each run, and removed after it
  public static Contender directWrite(Path file, int threads, long bytes) {
    return new Writing("O_DIRECT write and sync, ", file, threads, bytes, Set.of(DIRECT));
  }

  /// Writes a file through the page cache, until it is on the disk.
  ///
  /// @param file is made by each run, and removed after it
  public static Contender cachedWrite(Path file, int threads, long bytes) {
    return new Writing("write and sync, ", file, threads, bytes, Set.of());
  }

  private static ByteBuffer aligned(int bytes) {
    return ByteBuffer.allocateDirect(bytes + BLOCK_BYTES)
        .alignedSlice(BLOCK_BYTES)
        .limit(bytes)
        .slice()
        .order(ByteOrder.LITTLE_ENDIAN);
  }

  private static final class Reading implements Contender {
    private final String name;
    private final List<Path> files;
    private final Threads pool;
    private final Set<OpenOption> options;
    private final ByteBuffer[] buffers;
    private final Consumer<ByteBuffer> use;

    Reading(
        String name,
        List<Path> files,
        int threads,
        int bufferBytes,
        Set<OpenOption> options,
        Consumer<ByteBuffer> use) {
      this.name = name + ", " + Threads.count(threads);
      this.files = files;
      this.pool = new Threads(threads);
      this.options = new HashSet<>(options);
      this.options.add(StandardOpenOption.READ);
      this.use = use;
      buffers = new ByteBuffer[threads];
      for (int thread = 0; thread < threads; thread++) {
        buffers[thread] = aligned(bufferBytes);
      }
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public double run() throws Exception {
      return Contender.seconds(() -> {
        for (Path file : files) {
          read(file);
        }
      });
    }

    private void read(Path file) throws Exception {
      try (FileChannel channel = FileChannel.open(file, options)) {
        long size = channel.size();
        AtomicLong next = new AtomicLong();
        pool.run(thread -> {
          ByteBuffer buffer = buffers[thread];
          int step = buffer.capacity();
          for (long at = next.getAndAdd(step); at < size; at = next.getAndAdd(step)) {
            read(channel, buffer.clear(), at, size);
            use.accept(buffer.flip());
          }
        });
      }
    }

    private static void read(FileChannel channel, ByteBuffer buffer, long at, long size)
        throws IOException {
      long end = Math.min(at + buffer.capacity(), size);
      while (at + buffer.position() < end) {
        if (channel.read(buffer, at + buffer.position()) < 0) {
          throw new IOException("the file has become shorter");
        }
      }
    }

    @Override
    public void close() {
      pool.close();
    }
  }

  private static final class Writing implements Contender {
    private final String name;
    private final Path file;
    private final long bytes;
    private final Set<OpenOption> options;
    private final Threads pool;
    private final ByteBuffer[] buffers;

    Writing(String name, Path file, int threads, long bytes, Set<OpenOption> options) {
      this.name = name + Threads.count(threads);
      this.file = file;
      this.bytes = bytes / DIRECT_BYTES * DIRECT_BYTES;
      this.options = new HashSet<>(options);
      this.options.addAll(Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE));
      this.pool = new Threads(threads);
      buffers = new ByteBuffer[threads];
      for (int thread = 0; thread < threads; thread++) {
        buffers[thread] = aligned(DIRECT_BYTES);
        var _ =
            RandomCheckpoint.fill(
                buffers[thread], LongUnaryOperator.identity(), 88172645463325252L + thread);
      }
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public double run() throws Exception {
      try (FileChannel channel = FileChannel.open(file, options)) {
        long start = System.nanoTime();
        AtomicLong next = new AtomicLong();
        pool.run(thread -> {
          for (long at = next.getAndAdd(DIRECT_BYTES);
              at < bytes;
              at = next.getAndAdd(DIRECT_BYTES)) {
            // No block is like another.
            ByteBuffer buffer = buffers[thread].duplicate().order(ByteOrder.LITTLE_ENDIAN).clear();
            for (int block = 0; block < DIRECT_BYTES; block += BLOCK_BYTES) {
              buffer.putLong(block, at + block);
            }
            while (buffer.hasRemaining()) {
              channel.write(buffer, at + buffer.position());
            }
          }
        });
        channel.force(true);
        return (System.nanoTime() - start) / 1e9;
      } finally {
        Files.deleteIfExists(file);
      }
    }

    @Override
    public void close() {
      pool.close();
    }
  }
}
