// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.benchmarks.harness.Contender;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.zip.CRC32C;

/// What the JDK can do with files in the page cache, and nothing else.
final class CopyCeiling {
  private CopyCeiling() {}

  /// What is done with one file; returns how much was done.
  @FunctionalInterface
  interface FileWork {
    long run(Path file) throws Exception;
  }

  /// Does the work of all files, a file at a time on each thread, and adds up.
  static long each(List<Path> files, int threads, FileWork work) throws Exception {
    try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
      List<Future<Long>> parts =
          pool.invokeAll(files.stream().<Callable<Long>>map(file -> () -> work.run(file)).toList());
      long done = 0;
      for (Future<Long> part : parts) {
        done += part.get();
      }
      return done;
    }
  }

  /// Reads a file into one buffer, over and over.
  static long copy(Path file, ByteBuffer buffer) throws IOException {
    long bytes = 0;
    try (FileChannel channel = FileChannel.open(file)) {
      while (channel.read(buffer.clear(), bytes) >= 0) {
        bytes += buffer.position();
      }
    }
    return bytes;
  }

  /// Reads a file, and takes the checksum of all that it reads.
  static long copyAndChecksum(Path file, ByteBuffer buffer) throws IOException {
    CRC32C crc = new CRC32C();
    long bytes = 0;
    try (FileChannel channel = FileChannel.open(file)) {
      while (channel.read(buffer.clear(), bytes) >= 0) {
        bytes += buffer.position();
        crc.update(buffer.flip());
      }
    }
    return crc.getValue() == 0 ? 0 : bytes;
  }

  /// @param bytes of all files
  /// @param bufferBytes of each thread's own buffer
  static Contender contestant(List<Path> files, long bytes, int threads, int bufferBytes) {
    // On memory that is there already.
    ThreadLocal<ByteBuffer> buffers =
        ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(bufferBytes));
    return Contender.of(
        "copy, %s, %.1f MB".formatted(threads(threads), bufferBytes / 1e6),
        bytes,
        () -> each(files, threads, file -> copy(file, buffers.get())));
  }

  static String threads(int threads) {
    return threads == 1 ? "1 thread" : threads + " threads";
  }
}
