// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.djl.Weights;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/// From an F32 safetensors file in the page cache to NDArrays on the CPU: ours, DJL's own decoder,
/// and the plain copy of the JDK out of the page cache into a few buffers.
///
/// `benchmarks/jmh DecodeBenchmark -prof gc`
@State(Scope.Benchmark)
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Warmup(iterations = 3)
@Measurement(iterations = 10)
@Fork(
    value = 1,
    jvmArgsAppend = {
      "--enable-native-access=ALL-UNNAMED",
      "-Dai.djl.offline=true",
      "-Xmx4g",
      "-XX:+UseSerialGC"
    })
public class DecodeBenchmark {
  private static final int BUFFER_BYTES = 1 << 20;

  /// The size of the file in MB, of 64 tensors.
  @Param({"500"})
  private int megabytes;

  private Path file = Path.of("");
  private long size;

  @Setup
  public void makeFile() throws IOException {
    file = Files.createTempFile("gantry-decode-", ".safetensors");
    var _ = RandomCheckpoint.make(file, megabytes * 1_000_000L, 64, "F32");
    size = Files.size(file);
    copyOutOfThePageCache();
  }

  @TearDown
  public void deleteFile() throws IOException {
    Files.delete(file);
  }

  @Benchmark
  public long gantry() {
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(file);
        NDList arrays = weights.load(manager)) {
      return arrays.size();
    }
  }

  @Benchmark
  public long djlDecode() throws IOException {
    try (NDManager manager = NDManager.newBaseManager();
        InputStream in = new BufferedInputStream(Files.newInputStream(file));
        NDList arrays = NDList.decode(manager, in)) {
      return arrays.size();
    }
  }

  /// A reader on each core, each with one small buffer that stays in its cache.
  @Benchmark
  public long copyOutOfThePageCache() throws IOException {
    int readers = Runtime.getRuntime().availableProcessors();
    try (FileChannel channel = FileChannel.open(file)) {
      long part = Math.ceilDiv(channel.size(), readers);
      return IntStream.range(0, readers)
          .parallel()
          .mapToLong(i -> copy(channel, i * part, Math.min((i + 1) * part, size)))
          .sum();
    }
  }

  private static long copy(FileChannel channel, long from, long to) {
    ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER_BYTES);
    try {
      for (long at = from; at < to; at += buffer.position()) {
        buffer.clear().limit((int) Math.min(BUFFER_BYTES, to - at));
        if (channel.read(buffer, at) <= 0) {
          throw new IllegalStateException("the file ends at " + at);
        }
      }
      return to - from;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
