// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.inference.streaming.StreamingBlock;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import ai.djl.util.PairList;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.testing.Latches;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Predictions that continue after their call, and predictions that bypass [LiveWeights].
@ExtendWith(NoLeaks.class)
class CoveredPredictionsTest {
  private static final int SIZE = 8;

  @TempDir private Path folder;
  private final Model model = Model.newInstance("covered");

  @AfterEach
  void close() {
    model.close();
  }

  /// A block that streams tokens; each token is the parameter's first value, which is read twice.
  private static final class Tokens extends ParametersBlock implements StreamingBlock {
    private Runnable between = () -> {};

    @Override
    public Iterator<NDList> forwardStreamIter(
        ParameterStore store,
        NDList inputs,
        boolean training,
        @Nullable PairList<String, Object> settings) {
      NDManager manager = store.getManager();
      return Stream.generate(
              () -> {
                float first = value(store);
                between.run();
                return new NDList(manager.create(new float[] {first, value(store)}));
              })
          .iterator();
    }

    private float value(ParameterStore store) {
      NDArray array =
          store.getValue(getParameters().valueAt(0), store.getManager().getDevice(), false);
      try (NDArray sum = array.sum()) {
        return sum.getFloat();
      }
    }
  }

  private Weights weights(String name, String tensor, float value) throws IOException {
    double[] values = new double[SIZE];
    Arrays.fill(values, value);
    Path file = folder.resolve(name + ".safetensors");
    new WeightsFile().vector(tensor, DType.F32, values).write(file);
    return Weights.open(file);
  }

  private Tokens tokens() {
    Tokens tokens = new Tokens();
    tokens.with("one", model.getNDManager().ones(new Shape(SIZE)));
    tokens.initialize(model.getNDManager(), DataType.FLOAT32, new Shape(1));
    return tokens;
  }

  private static float[] next(Iterator<NDList> stream) {
    try (NDList token = stream.next()) {
      return token.singletonOrThrow().toFloatArray();
    }
  }

  private List<Iterator<NDList>> streams(LiveWeights live) {
    ParameterStore store = new ParameterStore(model.getNDManager(), false);
    StreamingBlock block = (StreamingBlock) live.block();
    return List.of(
        block.forwardStreamIter(store, new NDList(), false, null),
        block.forwardStream(store, new NDList(), false).iterator());
  }

  @Test
  @Timeout(60)
  void aTokenHasTheWeightsOfOneRefresh() throws Exception {
    Tokens tokens = tokens();
    try (LiveWeights live = LiveWeights.of(tokens);
        Weights twos = weights("twos", "one", 2);
        Weights threes = weights("threes", "one", 3)) {
      float before = SIZE;
      for (Iterator<NDList> stream : streams(live)) {
        Weights fresh = before == SIZE ? twos : threes;
        Thread refresher =
            Thread.ofPlatform()
                .unstarted(
                    () -> live.refresh(fresh, ParameterNames.same(), LoadOptions.defaults()));
        tokens.between =
            () -> {
              refresher.start();
              Latches.awaitThat(
                  () -> refresher.getState() == Thread.State.WAITING || !refresher.isAlive());
            };
        assertThat(next(stream)).containsExactly(before, before);
        tokens.between = () -> {};
        refresher.join();
        before += SIZE;
        assertThat(next(stream)).containsExactly(before, before);
      }
    }
    tokens.clear();
  }

  @Test
  void aStreamGoesOnAfterARestore() {
    Tokens tokens = tokens();
    try (LiveWeights live = LiveWeights.of(tokens)) {
      for (Iterator<NDList> stream : streams(live)) {
        assertThat(next(stream)).containsExactly(SIZE, SIZE);
        for (int time = 0; time < 2; time++) {
          live.offload();
          assertThatThrownBy(() -> next(stream))
              .isInstanceOf(MisuseException.class)
              .hasMessageContaining("call restore()");
          live.restore();
          assertThat(next(stream)).containsExactly(SIZE, SIZE);
        }
      }
    }
    tokens.clear();
  }

  private static float[] predict(Predictor<NDList, NDList> predictor, NDArray question)
      throws TranslateException {
    try (NDList answer = predictor.predict(new NDList(question))) {
      return answer.singletonOrThrow().toFloatArray();
    }
  }

  private Block linear(boolean loaded) throws IOException {
    Block linear = Linear.builder().setUnits(1).optBias(false).build();
    if (loaded) {
      Path file = folder.resolve("linear.safetensors");
      new WeightsFile()
          .tensor("weight", DType.F32, TensorShape.of(1, SIZE), new double[SIZE])
          .write(file);
      try (Weights weights = Weights.open(file)) {
        weights.load(
            model.getNDManager(),
            linear,
            ParameterNames.same(),
            LoadOptions.defaults(),
            new Shape(1, SIZE));
      }
    } else {
      linear.initialize(model.getNDManager(), DataType.FLOAT32, new Shape(1, SIZE));
    }
    return linear;
  }

  /// The cases are Gantry's arrays or DJL's, and predictors that have used the arrays before or
  /// not.
  @ParameterizedTest
  @CsvSource({"true, true", "true, false", "false, true", "false, false"})
  void aPredictorOfTheBlockItselfIsRefused(boolean loaded, boolean predictedBefore)
      throws Exception {
    model.setBlock(linear(loaded));
    try (Predictor<NDList, NDList> outside = model.newPredictor(new NoopTranslator());
        NDArray question = model.getNDManager().ones(new Shape(1, SIZE))) {
      float[] answer = predictedBefore ? predict(outside, question) : new float[] {Float.NaN};
      Block own = model.getBlock();
      try (LiveWeights live = LiveWeights.of(own)) {
        model.setBlock(live.block());
        try (Predictor<NDList, NDList> inside = model.newPredictor(new NoopTranslator())) {
          float[] same = predict(inside, question);
          assertThat(same).isEqualTo(predictedBefore ? answer : same);
          assertRefused(outside, question);
          live.offload();
          assertRefused(outside, question);
          live.restore();
          assertRefused(outside, question);
          model.setBlock(own);
          try (Predictor<NDList, NDList> fresh = model.newPredictor(new NoopTranslator())) {
            assertRefused(fresh, question);
          }
          model.setBlock(live.block());
          assertThat(predict(inside, question)).isEqualTo(same);
          assertThat(own.getParameters().valueAt(0).getArray().toFloatArray()).hasSize(SIZE);
        }
      }
      model.setBlock(own);
      try (Predictor<NDList, NDList> after = model.newPredictor(new NoopTranslator())) {
        assertThat(predict(after, question)).hasSize(1);
      }
    }
  }

  @Test
  void anOldPredictorIsToldAfterCloseThatItKnowsArraysOfBeforeAnOffload() throws Exception {
    model.setBlock(linear(true));
    try (Predictor<NDList, NDList> old = model.newPredictor(new NoopTranslator());
        NDArray question = model.getNDManager().ones(new Shape(1, SIZE))) {
      float[] answer = predict(old, question);
      LiveWeights.of(model.getBlock()).close();
      assertThat(predict(old, question)).isEqualTo(answer);
      try (LiveWeights live = LiveWeights.of(model.getBlock())) {
        live.offload();
        live.restore();
      }
      assertThatThrownBy(() -> predict(old, question))
          .rootCause()
          .isInstanceOf(MisuseException.class)
          .hasMessage(
              "the weights were offloaded after this predictor had used them: make another"
                  + " predictor");
      try (Predictor<NDList, NDList> next = model.newPredictor(new NoopTranslator())) {
        assertThat(predict(next, question)).isEqualTo(answer);
      }
    }
  }

  @Test
  void weightsThatWereOffloadedAtCloseAreSaidToBeGone() {
    Tokens tokens = tokens();
    LiveWeights live = LiveWeights.of(tokens);
    live.offload();
    live.close();
    ParameterStore store = new ParameterStore(model.getNDManager(), false);
    assertThatThrownBy(() -> live.block().forward(store, new NDList(), false))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "the weights were offloaded when these live weights were closed, so they are gone: load"
                + " the block again, and make new live weights of it");
    tokens.clear();
  }

  private static void assertRefused(Predictor<NDList, NDList> predictor, NDArray question) {
    assertThatThrownBy(() -> predict(predictor, question))
        .isInstanceOf(TranslateException.class)
        .rootCause()
        .satisfiesAnyOf(
            cause ->
                assertThat(cause)
                    .isInstanceOf(MisuseException.class)
                    .hasMessageContaining("does not go through live.block()"),
            // The predictor has kept an array of DJL, or the weights are offloaded.
            cause ->
                assertThat(cause)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("released"),
            cause -> assertThat(cause).hasMessageContaining("has not been initialized"));
  }
}
