package dev.gantry.benchmarks;

import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.djl.Checkpoint;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
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

/// From an F32 safetensors file in the page cache to NDArrays on the CPU: ours, DJL's own decoder, and
/// the ceiling, which is one copy out of the page cache into memory that is touched already.
///
/// `java -jar` is not needed: `mvn -q -B -pl benchmarks -am -DskipTests package`, then
/// `java -cp "benchmarks/target/classes:samples/target/lib/*:benchmarks/target/lib/*" org.openjdk.jmh.Main
/// DecodeBenchmark -prof gc`.
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
  /// The size of the file in MB, of 64 tensors.
  @Param({"500"})
  private int megabytes;

  private Path file = Path.of("");
  private byte[] touched = new byte[16 << 20];

  @Setup
  public void makeFile() throws IOException {
    file = Files.createTempFile("gantry-decode-", ".safetensors");
    MakeCheckpoint.make(file, megabytes * 1_000_000L, 64, "F32");
    copyOutOfThePageCache();
  }

  @TearDown
  public void deleteFile() throws IOException {
    Files.delete(file);
  }

  @Benchmark
  public long gantry() {
    try (NDManager manager = NDManager.newBaseManager();
        Checkpoint checkpoint = Checkpoint.open(file);
        NDList arrays = checkpoint.load(manager)) {
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

  @Benchmark
  public long copyOutOfThePageCache() throws IOException {
    long bytes = 0;
    try (InputStream in = Files.newInputStream(file)) {
      for (int count = in.read(touched); count >= 0; count = in.read(touched)) {
        bytes += count;
      }
    }
    return bytes;
  }
}
