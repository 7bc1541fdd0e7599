// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.util.Pair;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.SaveRequest;
import dev.gantry.formats.checkpoint.SaveOutcome;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/// From the F32 parameters of a DJL model on the CPU to the disk, durably: ours with manifest and
/// checksums, DJL's two ways with the file synchronised, and what the JDK can write at most,
/// through the page cache and past it. Files are removed off the clock.
///
/// `benchmarks/jmh SaveBenchmark -prof gc`
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
public class SaveBenchmark {
  private static final int LAYERS = 64;
  private static final int BUFFER_BYTES = 16 << 20;
  private static final int BLOCK_BYTES = 4096;

  /// The size of the parameters in MB.
  @Param({"500"})
  private int megabytes;

  private Path folder = Path.of("");
  private Model model = Model.newInstance("save");
  private NDList arrays = new NDList();
  private ByteBuffer buffer = ByteBuffer.allocate(0);
  private long bytes;

  @Setup
  public void makeModel() throws IOException {
    folder = Files.createTempDirectory("gantry-save-");
    long units = (long) Math.sqrt(megabytes * 1e6 / LAYERS / Float.BYTES);
    SequentialBlock block = new SequentialBlock();
    for (int i = 0; i < LAYERS; i++) {
      block.add(Linear.builder().setUnits(units).optBias(false).build());
    }
    block.initialize(model.getNDManager(), DataType.FLOAT32, new Shape(1, units));
    model.setBlock(block);
    for (Pair<String, Parameter> parameter : block.getParameters()) {
      NDArray array = parameter.getValue().getArray();
      array.setName(parameter.getKey());
      arrays.add(array);
    }
    bytes = LAYERS * units * units * Float.BYTES;
    buffer = ByteBuffer.allocateDirect(BUFFER_BYTES + BLOCK_BYTES).alignedSlice(BLOCK_BYTES);
    byte[] random = new byte[BUFFER_BYTES];
    new SplittableRandom(1).nextBytes(random);
    buffer.put(0, random);
  }

  @TearDown
  public void deleteFolder() throws IOException {
    model.close();
    Files.delete(folder);
  }

  @TearDown(Level.Invocation)
  public void deleteFiles() throws IOException, InterruptedException {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted((a, b) -> b.compareTo(a)).toList()) {
        if (!file.equals(folder)) {
          Files.delete(file);
        }
      }
    }
    // Some disks take long to forget files.
    new ProcessBuilder("sync").start().waitFor();
  }

  @Benchmark
  public SaveOutcome gantry() {
    try (CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      return saver.save(SaveRequest.builder().setStep(1).setModel(model).build()).join();
    }
  }

  @Benchmark
  public void djlEncode() throws IOException {
    try (FileChannel channel = create();
        OutputStream out = Channels.newOutputStream(channel)) {
      arrays.encode(out, NDList.Encoding.SAFETENSORS);
      channel.force(true);
    }
  }

  @Benchmark
  public void djlModelSave() throws IOException {
    model.save(folder, "model");
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
          channel.force(true);
        }
      }
    }
  }

  @Benchmark
  public void writeThroughThePageCache() throws IOException {
    try (FileChannel channel = create()) {
      write(channel);
    }
  }

  @Benchmark
  public void writeDirectly() throws IOException, ReflectiveOperationException {
    // By its name, since javac warns of the class.
    Class<?> options = Class.forName("com.sun.nio.file.ExtendedOpenOption");
    try (FileChannel channel = create((OpenOption) options.getField("DIRECT").get(null))) {
      write(channel);
    }
  }

  private FileChannel create(OpenOption... options) throws IOException {
    List<OpenOption> all =
        Stream.concat(
                Stream.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
                Stream.of(options))
            .toList();
    return FileChannel.open(folder.resolve("file"), all.toArray(OpenOption[]::new));
  }

  /// The same bytes over and over, by a writer on each core; the last block whole.
  private void write(FileChannel channel) throws IOException {
    int writers = Runtime.getRuntime().availableProcessors();
    long requests = Math.ceilDiv(bytes, BUFFER_BYTES);
    IntStream.range(0, writers)
        .parallel()
        .forEach(writer -> {
          for (long i = writer; i < requests; i += writers) {
            long at = i * BUFFER_BYTES;
            write(channel, at, Math.min(BUFFER_BYTES, bytes - at));
          }
        });
    channel.force(true);
  }

  private void write(FileChannel channel, long offset, long length) {
    ByteBuffer request =
        buffer.slice(0, Math.toIntExact(Math.ceilDiv(length, BLOCK_BYTES) * BLOCK_BYTES));
    try {
      while (request.hasRemaining()) {
        channel.write(request, offset + request.position());
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
