// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.Threads;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;

/// The ways to load that a Java program has without Gantry.
public final class JvmPeers {
  private static final long PART_BYTES = 8L << 20;

  private JvmPeers() {}

  /// DJL's own reader of safetensors, which brings all bytes into one array of the heap first.
  public static Contender djl(Path file) {
    return new Contender() {
      @Override
      public String name() {
        return "DJL NDList.decode";
      }

      @Override
      public String note() {
        return "to memory of DJL's default device, by way of the heap";
      }

      @Override
      public double run() throws IOException {
        long start = System.nanoTime();
        try (NDManager manager = NDManager.newBaseManager();
            InputStream in = new BufferedInputStream(Files.newInputStream(file));
            NDList arrays = NDList.decode(manager, in)) {
          double seconds = (System.nanoTime() - start) / 1e9;
          if (arrays.isEmpty()) {
            throw new IOException("DJL read no arrays");
          }
          return seconds;
        }
      }
    };
  }

  /// Reads a file's bytes into new native memory, without making tensors.
  static Contender channel(Path file, int threads) {
    return new Contender() {
      private final Threads pool = new Threads(threads);

      @Override
      public String name() {
        return "FileChannel, " + Threads.count(threads);
      }

      @Override
      public String note() {
        return "bytes to new native memory of the host; no tensors";
      }

      @Override
      public double run() throws Exception {
        long start = System.nanoTime();
        try (FileChannel channel = FileChannel.open(file);
            Arena arena = Arena.ofShared()) {
          long size = channel.size();
          MemorySegment memory = arena.allocate(size);
          long each = Math.ceilDiv(Math.ceilDiv(size, threads), PART_BYTES) * PART_BYTES;
          pool.run(
              thread -> read(channel, memory, thread * each, Math.min(size, (thread + 1) * each)));
          return (System.nanoTime() - start) / 1e9;
        }
      }

      @Override
      public void close() {
        pool.close();
      }
    };
  }

  private static void read(FileChannel channel, MemorySegment memory, long from, long to)
      throws IOException {
    for (long at = from; at < to; at += PART_BYTES) {
      ByteBuffer part = memory.asSlice(at, Math.min(PART_BYTES, to - at)).asByteBuffer();
      while (part.hasRemaining()) {
        if (channel.read(part, at + part.position()) < 0) {
          throw new IOException("the file has become shorter");
        }
      }
    }
  }
}
