// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.LayerNorm;
import ai.djl.training.ParameterStore;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.LiveResources;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Weights are replaced, offloaded and restored while predictors use them.
@ExtendWith(NoLeaks.class)
class LiveWeightsTest {
  private static final int SIZE = 40;

  /// The size of a slab lets it hold one layer.
  private static final LoadOptions IN_PARTS = LoadOptions.builder().slabBytes(8192).build();

  @TempDir private Path folder;
  private Model model;
  private Block block;
  private LiveWeights live;

  @BeforeEach
  void load() throws IOException {
    model = Model.newInstance("live");
    block =
        new SequentialBlock()
            .add(Linear.builder().setUnits(SIZE).build())
            .add(LayerNorm.builder().build())
            .add(Linear.builder().setUnits(SIZE).build());
    try (Weights weights = weights("first", 1)) {
      weights.load(
          model.getNDManager(),
          block,
          ParameterNames.same(),
          LoadOptions.defaults(),
          new Shape(1, SIZE));
    }
    live = LiveWeights.of(block);
    model.setBlock(live.block());
  }

  @AfterEach
  void close() {
    live.close();
    model.close();
  }

  /// Returns weights in two files, so that a test can remove the second.
  private Weights weights(String name, double factor) throws IOException {
    Path weights = Files.createDirectories(folder.resolve(name));
    for (int part = 1; part <= 3; part += 2) {
      WeightsFile file =
          new WeightsFile()
              .tensor(
                  "0" + part + "Linear_weight",
                  DType.F32,
                  TensorShape.of(SIZE, SIZE),
                  values(SIZE * SIZE, factor))
              .vector("0" + part + "Linear_bias", DType.F32, values(SIZE, factor));
      if (part == 1) {
        file.vector("02LayerNorm_gamma", DType.F32, values(SIZE, factor))
            .vector("02LayerNorm_beta", DType.F32, values(SIZE, factor));
      }
      file.write(weights.resolve(part + ".safetensors"));
    }
    return Weights.open(weights);
  }

  private static double[] values(int count, double factor) {
    double[] values = new double[count];
    Arrays.setAll(values, i -> factor * (i % 7 - 3));
    return values;
  }

  private float[] predict() throws TranslateException {
    try (Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator());
        NDArray question = model.getNDManager().arange(SIZE).reshape(1, SIZE)) {
      try (NDList answer =
          predictor.predict(new NDList(question.toType(DataType.FLOAT32, false)))) {
        return answer.singletonOrThrow().toFloatArray();
      }
    }
  }

  @Test
  @Timeout(60)
  void predictorsSeeTheOldWeightsOrTheNewOnes() throws Exception {
    float[] old = predict();
    Set<String> answers = ConcurrentHashMap.newKeySet();
    CountDownLatch begun = new CountDownLatch(1);
    AtomicBoolean stop = new AtomicBoolean();
    Thread server =
        Thread.ofPlatform()
            .start(() -> {
              try {
                while (!stop.get()) {
                  answers.add(Arrays.toString(predict()));
                  begun.countDown();
                }
              } catch (TranslateException e) {
                answers.add(e.toString());
              }
            });
    begun.await();
    float[] fresh;
    try (Weights second = weights("second", 2);
        Weights first = weights("first", 1)) {
      LoadReport report = live.refresh(second, ParameterNames.same(), IN_PARTS);
      assertThat(report.loaded()).hasSize(6);
      fresh = predict();
      for (int time = 0; time < 5; time++) {
        live.refresh(first, ParameterNames.same(), IN_PARTS);
        live.refresh(second, ParameterNames.same(), IN_PARTS);
      }
    }
    stop.set(true);
    server.join();
    assertThat(fresh).isNotEqualTo(old);
    assertThat(answers).isSubsetOf(Arrays.toString(old), Arrays.toString(fresh));
  }

  @Test
  void aRefreshThatFailsFirstChangesNothing() throws Exception {
    float[] old = predict();
    try (Weights second = weights("second", 2)) {
      Files.delete(folder.resolve("second").resolve("1.safetensors"));
      assertThatThrownBy(() -> live.refresh(second, ParameterNames.same(), IN_PARTS))
          .isInstanceOf(TransferException.class);
    }
    assertThat(predict()).isEqualTo(old);
    ParameterNames names = ParameterNames.builder().rule("{any*}", "x.{any}").build();
    try (Weights first = weights("first", 1)) {
      assertThatThrownBy(() -> live.refresh(first, names, IN_PARTS))
          .isInstanceOf(MisuseException.class);
    }
    assertThat(predict()).isEqualTo(old);
  }

  @Test
  void aRefreshThatFailsHalfWayIsNotServed() throws Exception {
    float[] old = predict();
    try (Weights second = weights("second", 2)) {
      Files.delete(folder.resolve("second").resolve("3.safetensors"));
      assertThatThrownBy(() -> live.refresh(second, ParameterNames.same(), IN_PARTS))
          .isInstanceOf(TransferException.class);
    }
    assertThatThrownBy(this::predict).hasMessageContaining("mixed: refresh them again");
    live.offload();
    assertThatThrownBy(this::predict).hasMessageContaining("call restore()");
    live.restore();
    assertThatThrownBy(this::predict).hasMessageContaining("mixed: refresh them again");
    try (Weights first = weights("first", 1)) {
      live.refresh(first, ParameterNames.same(), IN_PARTS);
    }
    assertThat(predict()).isEqualTo(old);
  }

  @Test
  void weightsLeaveAndComeBack() throws Exception {
    float[] old = predict();
    live.prepareOffload();
    LiveResources.Snapshot here = NoLeaks.held();
    for (int time = 0; time < 2; time++) {
      live.offload();
      assertThat(live.isOffloaded()).isTrue();
      assertThat(NoLeaks.held().slabs()).isLessThan(here.slabs());
      assertThat(block.isInitialized()).isFalse();
      assertThatThrownBy(this::predict).hasMessageContaining("call restore()");
      assertMisuse("call restore() first", live::offload);
      assertMisuse("call restore() first", live::prepareOffload);
      live.restore();
      assertThat(live.isOffloaded()).isFalse();
      assertThat(predict()).isEqualTo(old);
    }
    assertMisuse("not offloaded", live::restore);
    try (Weights second = weights("second", 2)) {
      live.refresh(second, ParameterNames.same(), IN_PARTS);
      float[] fresh = predict();
      live.offload();
      live.restore();
      assertThat(predict()).isEqualTo(fresh).isNotEqualTo(old);
    }
  }

  @Test
  void aPredictorGoesOnAfterARestore() throws Exception {
    try (Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator());
        NDArray question = model.getNDManager().ones(new Shape(1, SIZE))) {
      float[] old = predict(predictor, question);
      for (int time = 0; time < 2; time++) {
        live.offload();
        live.restore();
        // A GPU adds in another order if the arrays have other addresses.
        assertThat(predict(predictor, question)).containsExactly(old, Offset.offset(1e-3f));
      }
      try (Weights second = weights("second", 2)) {
        live.refresh(second, ParameterNames.same(), IN_PARTS);
        assertThat(predict(predictor, question)).isNotEqualTo(old);
      }
    }
  }

  private static float[] predict(Predictor<NDList, NDList> predictor, NDArray question)
      throws TranslateException {
    try (NDList answer = predictor.predict(new NDList(question))) {
      return answer.singletonOrThrow().toFloatArray();
    }
  }

  /// A block with a method of its own, like a language model that continues texts.
  public interface Counting extends Block {
    int count(ParameterStore store);

    /// Computes the numbers from 1 to 3, each when it is asked for.
    Iterator<Integer> numbers(ParameterStore store);
  }

  private static final class CountingBlock extends ParametersBlock implements Counting {
    @Override
    public int count(ParameterStore store) {
      return 3;
    }

    @Override
    public Iterator<Integer> numbers(ParameterStore store) {
      return List.of(1, 2, 3).iterator();
    }
  }

  @Test
  void theBlockIsOfTheKindThatTheGivenOneIs() {
    CountingBlock counting = new CountingBlock();
    counting.with("one", model.getNDManager().arange(6f));
    counting.initialize(model.getNDManager(), DataType.FLOAT32, new Shape(1));
    ParameterStore store = new ParameterStore(model.getNDManager(), false);
    try (LiveWeights weights = LiveWeights.of(counting)) {
      assertThat(weights.block())
          .isEqualTo(weights.block())
          .isInstanceOfSatisfying(
              Counting.class,
              block -> {
                assertThat(block.count(store)).isEqualTo(3);
                Iterator<Integer> numbers = block.numbers(store);
                assertThat(numbers.next()).isEqualTo(1);
                weights.offload();
                assertMisuse("call restore()", () -> block.count(store));
                assertMisuse("call restore()", numbers::next);
                weights.restore();
                assertThat(block.count(store)).isEqualTo(3);
                assertThat(numbers.next()).isEqualTo(2);
              });
    }
    counting.clear();
  }

  @Test
  void tiedParametersComeBackTied() {
    ParametersBlock tied = new ParametersBlock();
    NDArray array = model.getNDManager().arange(6f);
    tied.with("one", array).with("two", array.reshape(array.getShape()));
    tied.initialize(model.getNDManager(), DataType.FLOAT32, new Shape(1));
    try (LiveWeights both = LiveWeights.of(tied)) {
      both.offload();
      both.restore();
      NDArray one = tied.getParameters().get("one").getArray();
      one.addi(1);
      assertThat(tied.getParameters().get("two").getArray().toFloatArray())
          .containsExactly(1, 2, 3, 4, 5, 6);
    }
    tied.clear();
  }

  @Test
  void aBlockIsInOneOpenLiveWeightsOnly() throws Exception {
    float[] answer = predict();
    Block child = block.getChildren().valueAt(0);
    for (Block again : List.of(block, live.block(), child)) {
      assertMisuse("has LiveWeights that are open", () -> LiveWeights.of(again));
      assertThat(predict()).isEqualTo(answer);
    }
    live.offload();
    assertMisuse("has LiveWeights that are open", () -> LiveWeights.of(block));
    live.restore();
    live.close();
    try (LiveWeights next = LiveWeights.of(block)) {
      live.close();
      assertMisuse("has LiveWeights that are open", () -> LiveWeights.of(block));
      model.setBlock(next.block());
      assertThat(predict()).containsExactly(answer, Offset.offset(1e-3f));
    }
  }

  @Test
  @Timeout(60)
  void aChangeWithinAPredictionIsRefused() throws Exception {
    List<LiveWeights> own = new ArrayList<>();
    Block changing =
        new SequentialBlock()
            .add(Linear.builder().setUnits(1).build())
            .add(list -> {
              own.forEach(LiveWeights::offload);
              return list;
            });
    changing.initialize(model.getNDManager(), DataType.FLOAT32, new Shape(1, SIZE));
    try (LiveWeights changed = LiveWeights.of(changing)) {
      own.add(changed);
      model.setBlock(changed.block());
      assertThatThrownBy(this::predict)
          .hasRootCauseInstanceOf(MisuseException.class)
          .hasRootCauseMessage(
              "a prediction of this thread uses the weights: change them after forward has"
                  + " returned");
      assertThat(changed.isOffloaded()).isFalse();
    }
    changing.clear();
  }

  @Test
  void misuse() {
    Block other = Linear.builder().setUnits(1).build();
    assertMisuse("initialised", () -> LiveWeights.of(other));
    other.initialize(model.getNDManager(), DataType.FLOAT32, new Shape(1, SIZE));
    LiveWeights.of(other).close();
    live.close();
    assertMisuse("closed", live::offload);
    assertMisuse("closed", live::restore);
  }

  @Test
  void theWeightsOfAClosedModelAreNotRefreshed() throws IOException {
    try (Weights others = weights("second", 2)) {
      model.close();
      assertMisuse(
          "'01Linear_weight' is closed",
          () -> live.refresh(others, ParameterNames.same(), LoadOptions.defaults()));
    }
  }

  private static void assertMisuse(
      String words, org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
    assertThatThrownBy(call).isInstanceOf(MisuseException.class).hasMessageContaining(words);
  }
}
