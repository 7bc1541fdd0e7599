// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static java.nio.charset.StandardCharsets.UTF_8;
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
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.safetensors.SafetensorsSums;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.SocketAddress;
import java.net.URI;
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

/// A worker finds no heap for its next step: the operation fails with that error or works without
/// the worker, no resource is left, and the next operation of the same session succeeds.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class WorkersOutOfHeapTest {
  private static final int VALUES = 20_000;
  private static final int SAMPLES = 64;

  @FunctionalInterface
  private interface Operation {
    void run(WorkersOutOfHeapTest test) throws Exception;
  }

  /// The kinds of workers that make file calls, call stores, or ask for a proxy.
  enum Worker {
    READER("gantry-reader-", true, WorkersOutOfHeapTest::load),
    READER_OF_BATCHES("gantry-ring-", true, WorkersOutOfHeapTest::readShards),
    WRITER("gantry-writer-", true, test -> test.save(SaveMode.SYNC)),
    SAVER("gantry-saver", true, test -> test.save(SaveMode.ASYNC)),
    WRITER_OF_SHARDS("gantry-shard-writer-", true, WorkersOutOfHeapTest::writeShards),
    CACHE("gantry-cache-0", false, WorkersOutOfHeapTest::loadCached),
    SYNCHRONISER_OF_CACHES("gantry-cache-sync-", false, WorkersOutOfHeapTest::loadCached),
    LOADER_OF_PARTS("gantry-part-", true, WorkersOutOfHeapTest::loadInParts),
    OPENER("gantry-open-", true, WorkersOutOfHeapTest::loadSeveral),
    REQUEST("gantry-http-", true, WorkersOutOfHeapTest::loadServed),
    CHECKSUMS("gantry-sums-", true, WorkersOutOfHeapTest::makeSums),
    VERIFIER("gantry-verifier-", true, WorkersOutOfHeapTest::verifyShards),
    UPLOADER("gantry-uploader", false, WorkersOutOfHeapTest::upload);

    private final String thread;
    private final boolean needed;

    @SuppressWarnings("ImmutableEnumChecker") // The operations hold nothing.
    private final Operation operation;

    /// @param thread the prefix of the names of the workers' threads
    /// @param needed whether the operation fails without the worker
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
  private final ProxySelector proxies = ProxySelector.getDefault();
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
    ProxySelector.setDefault(proxies);
    MemoryStore.beforeEachOpen(null);
    MemoryStore.beforeEachWrite(null);
    http.close();
    manager.close();
    session.close();
  }

  @ParameterizedTest
  @EnumSource
  void theOperationEndsAndTheNextIsRight(Worker worker) throws Exception {
    OutOfMemoryError none = new OutOfMemoryError("made up");
    Runnable step =
        () -> {
          if (Thread.currentThread().getName().startsWith(worker.thread)
              && armed.compareAndSet(true, false)) {
            throw none;
          }
        };
    for (Function function : Function.values()) {
      calls.from(function, 1, new After(step));
    }
    MemoryStore.beforeEachOpen(_ -> step.run());
    MemoryStore.beforeEachWrite(_ -> step.run());
    ProxySelector.setDefault(new NoProxy(step));
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

  /// A selector that runs a step and then gives no address a proxy.
  private static final class NoProxy extends ProxySelector {
    private final Runnable step;

    NoProxy(Runnable step) {
      this.step = step;
    }

    @Override
    public List<Proxy> select(URI address) {
      step.run();
      return List.of(Proxy.NO_PROXY);
    }

    @Override
    public void connectFailed(URI address, SocketAddress proxy, IOException failure) {}
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

  /// Loads twelve tensors in slabs of two, with a cast.
  private void loadInParts() throws IOException {
    Path parts = folder.resolve("parts.safetensors");
    WeightsFile written = new WeightsFile();
    for (int i = 0; i < 12; i++) {
      written.vector(
          "t" + i, DType.F32, DoubleStream.iterate(i, one -> one + 1).limit(1024).toArray());
    }
    LoadOptions options = LoadOptions.builder().slabBytes(8192).optCast(DataType.FLOAT64).build();
    try (Weights weights = Weights.open(written.write(parts), session);
        NDList list = weights.load(manager, options)) {
      for (int i = 0; i < 12; i++) {
        assertThat(list.get("t" + i).toDoubleArray()).startsWith(i, i + 1.0).hasSize(1024);
      }
    }
  }

  private void loadSeveral() throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    Location _ = MemoryStore.put("several/1.safetensors", bytes);
    Location _ =
        MemoryStore.put(
            "several/2.safetensors",
            Files.readAllBytes(
                new WeightsFile()
                    .vector("more", DType.F32, 1, 2)
                    .write(folder.resolve("2.safetensors"))));
    String index = "{\"weight_map\":{\"rows\":\"1.safetensors\",\"more\":\"2.safetensors\"}}";
    Location all = MemoryStore.put("several/model.safetensors.index.json", index.getBytes(UTF_8));
    try (Weights weights = Weights.open(all.toString(), session);
        NDList list = weights.load(manager)) {
      assertThat(list.get("rows").toFloatArray()).isEqualTo(values);
      assertThat(list.get("more").toFloatArray()).containsExactly(1, 2);
    }
  }

  private void loadServed() throws IOException {
    String location = http.put("plain.safetensors", Files.readAllBytes(file)).toString();
    try (Weights weights = Weights.open(location, session);
        NDList list = weights.load(manager)) {
      assertThat(list.get("rows").toFloatArray()).isEqualTo(values);
    }
  }

  private void makeSums() {
    assertThat(SafetensorsSums.build(session, file)).isEqualTo(1);
  }

  private void verifyShards() {
    Path shards = folder.resolve("verified");
    if (!Files.exists(shards)) {
      ImageShards.write(shards, SAMPLES, 20);
    }
    ShardSet.open(shards).verify(session);
  }

  private void upload() {
    int step = ++steps;
    ParametersBlock block = new ParametersBlock();
    try (Model model = Model.newInstance("saved", Device.cpu(), "PyTorch")) {
      block.with("a", model.getNDManager().full(new Shape(30), step, DataType.FLOAT32));
      model.setBlock(block);
      try (CheckpointSaver saver =
          CheckpointSaver.builder()
              .setPath(folder.resolve("uploaded"))
              .optRemote("memory://out-of-heap/run")
              .optSession(session)
              .build()) {
        var _ = saver.save(SaveRequest.builder().setStep(step).setModel(model).build());
        saver.awaitUploads();
      }
    }
    assertThat(MemoryStore.names("out-of-heap/run"))
        .anyMatch(name -> name.contains("step-" + step + "-") && name.endsWith("/manifest.json"));
  }
}
