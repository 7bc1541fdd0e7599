// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A worker finds no heap for its next step: the operation ends with that error or does without the worker, nothing
/// stays, and the next operation of the same session is right.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class WorkersOutOfHeapTest {
  private static final int VALUES = 20_000;
  private static final int SAMPLES = 64;

  @FunctionalInterface
  private interface Operation {
    void run(WorkersOutOfHeapTest test) throws Exception;
  }

  /// The kinds of workers that make file calls.
  enum Worker {
    READER("gantry-reader-", true, WorkersOutOfHeapTest::load),
    READER_OF_BATCHES("gantry-ring-", true, WorkersOutOfHeapTest::readShards),
    WRITER("gantry-writer-", true, test -> test.save(SaveMode.SYNC)),
    SAVER("gantry-saver", true, test -> test.save(SaveMode.ASYNC)),
    WRITER_OF_SHARDS("gantry-shard-writer-", true, WorkersOutOfHeapTest::writeShards),
    CACHE("gantry-cache-0", false, WorkersOutOfHeapTest::loadCached),
    SYNCHRONISER_OF_CACHES("gantry-cache-sync-", false, WorkersOutOfHeapTest::loadCached);

    private final String thread;
    private final boolean needed;

    @SuppressWarnings("ImmutableEnumChecker") // The operations hold nothing.
    private final Operation operation;

    /// @param thread the prefix of the workers' names
    /// @param needed whether the operation cannot do without the worker
    Worker(String thread, boolean needed, Operation operation) {
      this.thread = thread;
      this.needed = needed;
      this.operation = operation;
    }
  }

  @TempDir private Path folder;
  private final FaultyFileCalls calls = new FaultyFileCalls(FileCalls.ofPlatform());
  private final AtomicBoolean armed = new AtomicBoolean();
  private final GantrySession session = Sessions.over(calls);
  private final NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch");
  private final RangeServer http = new RangeServer();
  private final float[] values = new float[VALUES];
  private Path file;
  private int steps;

  @BeforeEach
  void write() throws IOException {
    double[] doubles = DoubleStream.iterate(0, value -> value + 1).limit(VALUES).toArray();
    for (int i = 0; i < VALUES; i++) {
      values[i] = (float) doubles[i];
    }
    file =
        new WeightsFile()
            .tensor("rows", DType.F32, TensorShape.of(VALUES), doubles)
            .write(folder.resolve("model.safetensors"));
  }

  @AfterEach
  void close() {
    http.close();
    manager.close();
    session.close();
  }

  @ParameterizedTest
  @EnumSource
  void theOperationEndsAndTheNextIsRight(Worker worker) throws Exception {
    OutOfMemoryError none = new OutOfMemoryError("made up");
    for (Function function : Function.values()) {
      calls.from(
          function,
          1,
          new After(() -> {
            if (Thread.currentThread().getName().startsWith(worker.thread)
                && armed.compareAndSet(true, false)) {
              throw none;
            }
          }));
    }
    worker.operation.run(this);
    armed.set(true);
    Throwable failure = catchThrowable(() -> worker.operation.run(this));
    assertThat(armed).as("the worker made no call").isFalse();
    if (worker.needed) {
      assertThat(failure)
          .satisfiesAnyOf(
              one -> assertThat(one).isSameAs(none), one -> assertThat(one).hasRootCause(none));
    } else {
      assertThat(failure).isNull();
    }
    worker.operation.run(this);
  }

  private void load() {
    try (Weights weights = Weights.open(file, session);
        NDList list = weights.load(manager, LoadOptions.builder().optRequestBytes(8192).build())) {
      assertThat(list.get("rows").toFloatArray()).isEqualTo(values);
    }
  }

  private void readShards() {
    Path shards = folder.resolve("shards");
    if (!Files.exists(shards)) {
      ImageShards.write(shards, SAMPLES, 20);
    }
    int samples = 0;
    try (ShardDataset dataset =
            ShardDataset.builder().setPath(shards).setSampling(8).optSession(session).build();
        NDManager own = manager.newSubManager()) {
      for (Batch batch : dataset.getData(own)) {
        try (batch) {
          samples += batch.getSize();
        }
      }
    }
    assertThat(samples).isEqualTo(SAMPLES);
  }

  private void save(SaveMode mode) {
    int step = ++steps;
    ParametersBlock block = new ParametersBlock();
    try (Model model = Model.newInstance("saved", Device.cpu(), "PyTorch")) {
      block.with("a", model.getNDManager().full(new Shape(3000), step, DataType.FLOAT32));
      model.setBlock(block);
      try (CheckpointSaver saver =
          CheckpointSaver.builder()
              .setPath(folder.resolve("checkpoints"))
              .optMode(mode)
              .optSession(session)
              .build()) {
        var _ = saver.save(SaveRequest.builder().setStep(step).setModel(model).build());
        saver.await();
        assertThat(saver.latest().orElseThrow().step()).isEqualTo(step);
      }
    }
  }

  private void writeShards() {
    Path shards = folder.resolve("written-" + ++steps);
    List<Field> fields = List.of(new Field("number", DType.I64, TensorShape.of()));
    ShardOptions options = ShardOptions.defaults().withSamplesPerShard(4);
    try (ShardWriter writer = ShardWriter.create(session, shards, fields, options)) {
      for (long i = 0; i < 16; i++) {
        writer.append(Map.of("number", MemorySegment.ofArray(new long[] {i})));
      }
      assertThat(writer.finish().samples()).isEqualTo(16);
    }
  }

  private void loadCached() throws IOException {
    String location =
        http.put("served-" + ++steps + ".safetensors", Files.readAllBytes(file)).toString();
    try (GantrySession caching = Sessions.over(calls)) {
      caching.cacheRemoteFiles(folder.resolve("cache"), 1 << 20);
      for (int i = 0; i < 2; i++) {
        try (Weights weights = Weights.open(location, caching);
            NDList list = weights.load(manager)) {
          assertThat(list.get("rows").toFloatArray()).isEqualTo(values);
        }
      }
    }
  }
}
