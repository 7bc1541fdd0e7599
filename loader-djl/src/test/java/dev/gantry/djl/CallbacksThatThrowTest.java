// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.testing.RangeServer;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A callback of the program throws: the program gets exactly that exception, no resource is left,
/// and the next operation of the same session succeeds.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class CallbacksThatThrowTest {
  private static final int TENSORS = 12;
  private static final int VALUES = 1024;
  private static final int SAMPLES = 40;

  @FunctionalInterface
  private interface Operation {
    void run(CallbacksThatThrowTest test, Runnable callback) throws Exception;
  }

  enum Callback {
    PROGRESS_OF_A_LOAD((test, callback) -> test.load(progress(callback))),
    PROGRESS_OF_A_LOAD_IN_PARTS((test, callback) ->
        test.load(progress(callback).slabBytes(8192).optCast(DataType.FLOAT64))),
    PROGRESS_OF_A_REMOTE_LOAD(
        (test, callback) -> test.load(test.served(), progress(callback).build())),
    REPORT((test, callback) -> test.load(LoadOptions.builder().optReport(_ -> callback.run()))),
    REPORT_OF_PLAIN_MEMORY(CallbacksThatThrowTest::loadMemory),
    SELECTION((test, callback) ->
        test.load(
            LoadOptions.builder()
                .optSelection(
                    TensorSelection.matching(_ -> {
                      callback.run();
                      return true;
                    })))),
    PROGRESS_OF_A_WRITE(CallbacksThatThrowTest::write),
    PROGRESS_OF_A_SAVE((test, callback) -> test.save(SaveMode.SYNC, callback, () -> {})),
    PROGRESS_OF_A_SAVE_IN_THE_BACKGROUND(
        (test, callback) -> test.save(SaveMode.ASYNC, callback, () -> {})),
    PROGRESS_OF_AN_OVERLAPPED_SAVE(
        (test, callback) -> test.save(SaveMode.OVERLAPPED, callback, () -> {})),
    STATE_THAT_IS_SAVED((test, callback) -> test.save(SaveMode.SYNC, () -> {}, callback)),
    STATE_THAT_IS_RESTORED(CallbacksThatThrowTest::restore),
    STATE_OF_A_DATASET(CallbacksThatThrowTest::train),
    TRANSFORM((test, callback) -> test.epoch(test.shards().optTransform(passing(callback)))),
    TRANSFORM_OF_LABELS(
        (test, callback) -> test.epoch(test.shards().optLabelTransform(passing(callback)))),
    FILTER((test, callback) ->
        test.epoch(
            test.shards()
                .optFilter(
                    "label",
                    _ -> {
                      callback.run();
                      return true;
                    }))),
    WEIGHTS((test, callback) ->
        test.epoch(
            test.shards()
                .optWeights(
                    1,
                    "label",
                    _ -> {
                      callback.run();
                      return 1;
                    }))),
    PROGRESS_OF_SHARDS(CallbacksThatThrowTest::writeShards),
    PROGRESS_OF_A_VERIFICATION((test, callback) ->
        ShardSet.open(test.samples)
            .verify(test.session, 2, (_, _) -> callback.run(), new Cancellation()));

    @SuppressWarnings("ImmutableEnumChecker") // Its lambdas hold nothing.
    private final Operation operation;

    /// @param operation receives the callback's action
    Callback(Operation operation) {
      this.operation = operation;
    }
  }

  @TempDir private Path folder;
  private final GantrySession session = GantrySession.open();
  private final NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch");
  private final RangeServer http = new RangeServer();
  private Path file;
  private Path samples;
  private int steps;

  @BeforeEach
  void write() throws IOException {
    WeightsFile written = new WeightsFile();
    for (int i = 0; i < TENSORS; i++) {
      double[] values = DoubleStream.iterate(i, one -> one + 1).limit(VALUES).toArray();
      written.tensor("t" + i, DType.F32, TensorShape.of(VALUES), values);
    }
    file = written.write(folder.resolve("model.safetensors"));
    samples = ImageShards.write(folder.resolve("shards"), SAMPLES, 20);
  }

  @AfterEach
  void close() {
    http.close();
    manager.close();
    session.close();
  }

  @ParameterizedTest
  @EnumSource
  void theProgramGetsWhatItsCallbackThrowsAndTheNextIsRight(Callback callback) throws Exception {
    for (Throwable own : List.of(new IllegalStateException("own"), new AssertionError("own"))) {
      int before = manager.getManagedArrays().size();
      Throwable failure =
          catchThrowable(() ->
              callback.operation.run(
                  this,
                  () -> {
                    if (own instanceof Error error) {
                      throw error;
                    }
                    throw (RuntimeException) own;
                  }));
      assertThat(failure).isSameAs(own);
      assertThat(manager.getManagedArrays()).hasSize(before);
      callback.operation.run(this, () -> {});
    }
  }

  private static LoadOptions.Builder progress(Runnable callback) {
    return LoadOptions.builder().optProgress((_, _) -> callback.run());
  }

  private static UnaryOperator<NDList> passing(Runnable callback) {
    return list -> {
      callback.run();
      return list;
    };
  }

  private String served() throws IOException {
    return http.put("served.safetensors", Files.readAllBytes(file)).toString();
  }

  private void load(LoadOptions.Builder options) {
    load(file.toString(), options.build());
  }

  private void load(String location, LoadOptions options) {
    try (Weights weights = Weights.open(location, session);
        NDList list = weights.load(manager, options)) {
      assertThat(list).hasSize(TENSORS);
      for (int i = 0; i < TENSORS; i++) {
        NDArray array = list.get("t" + i).toType(DataType.FLOAT32, false);
        assertThat(array.toFloatArray()).startsWith(i, i + 1).hasSize(VALUES);
      }
    }
  }

  private void loadMemory(Runnable callback) {
    LoadOptions options = LoadOptions.builder().optReport(_ -> callback.run()).build();
    try (Weights weights = Weights.open(file, session);
        TensorMemory memory = weights.loadMemory(options)) {
      assertThat(memory.tensors()).hasSize(TENSORS);
    }
  }

  private void write(Runnable callback) {
    Path written = folder.resolve("written.safetensors");
    try (NDArray array = manager.arange(3000)) {
      WeightsWriter.builder()
          .setFile(written)
          .optSession(session)
          .optProgress((_, _) -> callback.run())
          .build()
          .write(Map.of("a", array));
    }
    assertThat(written).exists();
  }

  private CheckpointSaver.Builder saver() {
    return CheckpointSaver.builder().setPath(folder.resolve("run")).optSession(session);
  }

  private void save(SaveMode mode, Runnable progress, Runnable state) {
    int step = ++steps;
    try (Training training = Fit.training();
        CheckpointSaver saver =
            saver()
                .optMode(mode)
                .optProgress((_, _) -> progress.run())
                .optState(
                    "own",
                    () -> {
                      state.run();
                      return "text";
                    },
                    _ -> {})
                .build()) {
      training.steps(0, 1);
      var _ = saver.save(step, training.model, training.trainer);
      saver.await();
      assertThat(saver.latest().orElseThrow().step()).isEqualTo(step);
    }
  }

  private void restore(Runnable callback) {
    save(SaveMode.SYNC, () -> {}, () -> {});
    try (Training training = Fit.training();
        CheckpointSaver saver = saver().optState("own", () -> "", _ -> callback.run()).build()) {
      assertThat(saver.restoreLatest(training.model, training.trainer)).isPresent();
    }
  }

  private void train(Runnable callback) throws Exception {
    try (CheckpointSaver saver = saver().build();
        Training training =
            Fit.training(
                CheckpointListener.builder()
                    .setSaver(saver)
                    .optEverySteps(3)
                    .optDatasetState(() -> {
                      callback.run();
                      return Optional.of("here");
                    })
                    .build())) {
      Fit.fit(training, 1);
      saver.await();
      assertThat(saver.latest()).isPresent();
    }
  }

  private ShardDataset.Builder shards() {
    return ShardDataset.builder().setPath(samples).setSampling(8).optSession(session);
  }

  private void epoch(ShardDataset.Builder builder) {
    int taken = 0;
    try (ShardDataset dataset = builder.build();
        NDManager own = manager.newSubManager()) {
      for (Batch batch : dataset.getData(own)) {
        try (batch) {
          taken += batch.getSize();
        }
      }
    }
    assertThat(taken).isEqualTo(SAMPLES);
  }

  private void writeShards(Runnable callback) {
    List<Field> fields = List.of(new Field("number", DType.I64, TensorShape.of()));
    ShardOptions options =
        ShardOptions.defaults().withSamplesPerShard(4).withProgress((_, _) -> callback.run());
    try (ShardWriter writer =
        ShardWriter.create(session, folder.resolve("new-" + ++steps), fields, options)) {
      for (long i = 0; i < 16; i++) {
        writer.append(Map.of("number", MemorySegment.ofArray(new long[] {i})));
      }
      assertThat(writer.finish().samples()).isEqualTo(16);
    }
  }
}
