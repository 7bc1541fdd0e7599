// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.HostCeilings;
import dev.gantry.benchmarks.harness.Threads;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;

/// The loaders that a Java program can use without Gantry.
public final class JvmPeers {
  private static final long PART_BYTES = 8L << 20;

  private JvmPeers() {}

  /// DJL's own reader of safetensors, which brings all bytes into one array of the heap first.
  public static Contender djl(Path file) {
    return Contender.timed(
        "DJL NDList.decode",
        "to memory of DJL's default device, by way of the heap",
        () -> {
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
        });
  }

  /// Reads a file's bytes into new native memory, without making tensors.
  static Contender channel(Path file, int threads) {
    Threads pool = new Threads(threads);
    return Contender.timed(
        "FileChannel, " + Threads.count(threads),
        "bytes to new native memory of the host; no tensors",
        () -> {
          long start = System.nanoTime();
          try (FileChannel channel = FileChannel.open(file);
              Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(channel.size());
            pool.run(
                memory.byteSize(),
                PART_BYTES,
                (_, from, to) ->
                    HostCeilings.read(
                        channel,
                        memory.asSlice(from, to - from).asByteBuffer(),
                        from,
                        (int) (to - from)));
            return (System.nanoTime() - start) / 1e9;
          }
        },
        pool::close);
  }
}
