// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.training.ParameterStore;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import ai.djl.util.PairList;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.LoadOptions;
import dev.gantry.formats.internal.json.JsonTree;
import dev.gantry.models.internal.blocks.DecoderBlock;
import dev.gantry.models.spi.CausalBlock;
import dev.gantry.models.spi.KeyValueCache;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.PrimitiveIterator;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class TextGeneratorTest {
  @AfterEach
  void nothingIsLeft() {
    // The session keeps pinned buffers from load to load on a GPU.
    GantrySession.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  private static Model model(String name) {
    return HubModel.of(HubModelTest.HUB.resolve(name))
        .load(Device.fromName(""), LoadOptions.defaults());
  }

  /// With a cache of keys and values, where the reference's is.
  @ParameterizedTest
  @CsvSource({
    "llama-rope3, 20",
    "gpt2-untied, 20",
    "llama-yarn, 200",
    "llama-longrope, 200",
    "mistral, 200",
    "qwen2, 200",
    "phi3-window, 200",
    "qwen3, 200",
    "granite, 200",
    "smollm3, 200",
    "olmo2, 200",
    "stablelm, 200",
    "gpt-neox, 200",
    "gemma, 200",
    "gemma2, 200",
    "gemma3, 200",
    "mixtral, 200",
    "qwen3-moe, 200",
    "gpt-oss, 200"
  })
  void greedyTokensAreThoseOfTheReference(String name, int count) throws IOException {
    long[] all =
        Reference.of(HubModelTest.HUB.resolve(name)).generated().stream()
            .mapToLong(Long::longValue)
            .toArray();
    long[] prompt = Arrays.copyOf(all, all.length - count);
    try (Model model = model(name)) {
      assertThat(TextGenerator.builder().optMaxTokens(count).build().generate(model, prompt))
          .isEqualTo(Arrays.copyOfRange(all, prompt.length, all.length));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"llama", "gpt2"})
  void theFirstTokenIsTheReferencesBest(String name) throws IOException {
    Reference reference = Reference.of(HubModelTest.HUB.resolve(name));
    Reference.Values ids = reference.inputs().get("input_ids");
    Reference.Values logits = reference.outputs().get("logits");
    int length = (int) ids.shape().get(1);
    int vocabulary = (int) logits.shape().get(2);
    int best = 0;
    int row = (length - 1) * vocabulary;
    for (int i = 0; i < vocabulary; i++) {
      best = logits.values().get(row + i) > logits.values().get(row + best) ? i : best;
    }
    long[] prompt = new long[length];
    Arrays.setAll(prompt, i -> ids.values().get(i).longValue());
    try (Model model = model(name)) {
      assertThat(TextGenerator.builder().optMaxTokens(1).build().generate(model, prompt))
          .containsExactly(best);
    }
  }

  /// The rotary embedding of the model is another one for texts of more than 6 tokens. Phi-3 begins such a text anew.
  @Test
  void aTextThatOutgrowsTheFirstTrainingGoesOnAsIfItHadBeenLong() throws TranslateException {
    HubModel hub = HubModel.of(HubModelTest.HUB.resolve("phi3"));
    long[] text = {9, 31, 7, 12};
    try (Model model = hub.load(Device.fromName(""), LoadOptions.defaults());
        Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator())) {
      long[] generated = TextGenerator.builder().optMaxTokens(8).build().generate(model, text);
      for (long token : generated) {
        try (NDManager manager = model.getNDManager().newSubManager()) {
          NDArray ids = manager.create(text, new Shape(1, text.length));
          NDArray scores = predictor.predict(new NDList(ids)).singletonOrThrow();
          assertThat(token).isEqualTo(scores.get(0, text.length - 1).argMax().getLong());
        }
        text = Arrays.copyOf(text, text.length + 1);
        text[text.length - 1] = token;
      }
    }
  }

  @Test
  void aSeedGivesTheSameTextAndOthersGiveOthers() {
    try (Model model = model("llama")) {
      List<String> texts = new ArrayList<>();
      for (long seed : new long[] {1, 1, 2, 3, 4}) {
        TextGenerator drawing =
            TextGenerator.builder().optMaxTokens(12).optTemperature(2).optSeed(seed).build();
        texts.add(Arrays.toString(drawing.generate(model, 1, 2, 3)));
      }
      assertThat(texts.get(0)).isEqualTo(texts.get(1));
      assertThat(texts.stream().collect(Collectors.toSet())).hasSize(4);
    }
  }

  @Test
  void theBestOfOneIsTheGreedyOne() {
    try (Model model = model("llama")) {
      TextGenerator drawing = TextGenerator.builder().optTemperature(3).optTopK(1).build();
      assertThat(drawing.generate(model, 1, 2, 3))
          .isEqualTo(TextGenerator.builder().build().generate(model, 1, 2, 3));
    }
  }

  @Test
  void theLeastTemperatureDrawsTheBestToken() {
    try (Model model = model("llama")) {
      TextGenerator drawing = TextGenerator.builder().optTemperature(Double.MIN_VALUE).build();
      assertThat(drawing.generate(model, 1, 2, 3))
          .isEqualTo(TextGenerator.builder().build().generate(model, 1, 2, 3));
    }
  }

  @Test
  void anEndTokenEndsTheText() {
    try (Model model = model("llama")) {
      List<Long> heard = new ArrayList<>();
      long[] all = TextGenerator.builder().optMaxTokens(5).build().generate(model, 9, 8);
      long[] cut =
          TextGenerator.builder()
              .optEnds(all[0])
              .optListener(heard::add)
              .build()
              .generate(model, 9, 8);
      assertThat(cut).containsExactly(all[0]);
      assertThat(heard).containsExactly(all[0]);
    }
  }

  @Test
  void aListenerThatThrowsEndsTheTextAndTheNextIsWhole() {
    try (Model model = model("llama")) {
      long[] all = TextGenerator.builder().optMaxTokens(5).build().generate(model, 9, 8);
      for (Error own : List.of(new AssertionError("own"), new OutOfMemoryError("own"))) {
        TextGenerator throwing =
            TextGenerator.builder()
                .optMaxTokens(5)
                .optListener(token -> {
                  if (token == all[2]) {
                    throw own;
                  }
                })
                .build();
        assertThatThrownBy(() -> throwing.generate(model, 9, 8)).isSameAs(own);
        assertThat(TextGenerator.builder().optMaxTokens(5).build().generate(model, 9, 8))
            .isEqualTo(all);
      }
    }
  }

  @Test
  void aFolderSaysWhatEndsATextOfIt(@TempDir Path folder) throws IOException {
    assertThat(HubModel.of(HubModelTest.HUB.resolve("llama")).endTokens()).containsExactly(2);
    assertThat(HubModel.of(HubModelTest.HUB.resolve("bert")).endTokens()).isEmpty();

    Files.copy(HubModelTest.HUB.resolve("llama/config.json"), folder.resolve("config.json"));
    Path generation = folder.resolve("generation_config.json");
    Files.writeString(generation, "{\"eos_token_id\": [7, 9], \"temperature\": 0.6}");
    assertThat(HubModel.of(folder).endTokens()).containsExactly(7, 9);
    Files.writeString(generation, "{\"do_sample\": true}");
    assertThat(HubModel.of(folder).endTokens()).isEmpty();
    Files.writeString(generation, "{\"eos_token_id\": \"</s>\"}");
    assertThatThrownBy(() -> HubModel.of(folder))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll(generation.toString(), "'eos_token_id'");
  }

  @Test
  void theModelsLengthEndsTheText() {
    try (Model model = model("gpt2")) {
      long[] prompt = new long[60];
      assertThat(TextGenerator.builder().build().generate(model, prompt)).hasSize(4);
    }
  }

  /// Passes on to another block, and keeps how many tokens each pass had.
  private static final class Counting extends AbstractBlock implements CausalBlock {
    final List<Long> passes = new ArrayList<>();
    private final DecoderBlock block;

    Counting(DecoderBlock block) {
      this.block = addChildBlock("block", block);
    }

    @Override
    protected void initializeChildBlocks(NDManager manager, DataType type, Shape... shapes) {
      block.initialize(manager, type, shapes);
    }

    @Override
    public NDArray nextScores(ParameterStore store, NDArray ids, KeyValueCache cache) {
      passes.add(ids.getShape().get(1));
      return block.nextScores(store, ids, cache);
    }

    @Override
    public int vocabularySize() {
      return block.vocabularySize();
    }

    @Override
    public int maxPositions() {
      return block.maxPositions();
    }

    @Override
    protected NDList forwardInternal(
        ParameterStore store,
        NDList inputs,
        boolean training,
        @Nullable PairList<String, Object> params) {
      return block.forward(store, inputs, training);
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
      return block.getOutputShapes(inputShapes);
    }
  }

  @Test
  void aLongPromptGoesInPiecesAndIsContinuedAsInOne() {
    Map<String, Object> config =
        Map.of(
            "model_type", "llama",
            "num_hidden_layers", 2.0,
            "hidden_size", 16.0,
            "intermediate_size", 32.0,
            "num_attention_heads", 4.0,
            "num_key_value_heads", 2.0,
            "vocab_size", 50.0,
            "max_position_embeddings", 1024.0,
            "rope_theta", 100.0);
    Path nowhere = Path.of("nowhere");
    HubConfig read = HubConfig.of(Location.of(nowhere), new JsonTree(config));
    Counting block =
        new Counting(
            (DecoderBlock)
                Architecture.of(new HubFolder(FetchedModel.local(nowhere), read, List.of()))
                    .design()
                    .newBlock());
    long[] prompt = new SplittableRandom(3).longs(600, 0, 50).toArray();
    try (Model model = Model.newInstance("long", Device.cpu(), "PyTorch")) {
      block.initialize(model.getNDManager(), DataType.FLOAT32, new Shape(1, 1));
      model.setBlock(block);

      long[] tokens = TextGenerator.builder().optMaxTokens(2).build().generate(model, prompt);

      assertThat(block.passes).containsExactly(256L, 256L, 88L, 1L);
      try (NDManager manager = model.getNDManager().newSubManager()) {
        ParameterStore store = new ParameterStore(manager, false);
        NDArray ids = manager.create(prompt, new Shape(1, prompt.length));
        NDArray scores = block.forward(store, new NDList(ids), false).singletonOrThrow();
        assertThat(tokens[0]).isEqualTo(scores.get(0, 599).argMax().getLong());
      }
    }
  }

  /// The prompts of a batch have other positions of their own than their places.
  @ParameterizedTest
  @ValueSource(strings = {"llama-rope3", "gpt2-untied"})
  void textsOfABatchGetTheAnswersThatTheyGetAlone(String name) {
    List<long[]> prompts = List.of(new long[] {5}, longs(40, 1), longs(7, 2), longs(40, 3));
    for (double temperature : new double[] {0, 1.5}) {
      TextGenerator.Builder drawing =
          TextGenerator.builder().optMaxTokens(30).optTemperature(temperature).optSeed(3);
      try (Model model = model(name)) {
        // The end of one text is a token that others may have, too.
        long end = drawing.build().generate(model, prompts.get(2))[4];
        TextGenerator generator = drawing.optEnds(end).optRepetitionPenalty(1.1).build();
        List<long[]> alone =
            prompts.stream().map(prompt -> generator.generate(model, prompt)).toList();
        assertThat(generator.generate(model, prompts)).containsExactlyElementsOf(alone);
        assertThat(generator.generate(model, List.of())).isEmpty();
      }
    }
  }

  private static long[] longs(int count, long seed) {
    return new SplittableRandom(seed).longs(count, 0, 60).toArray();
  }

  @Test
  void aSessionComputesOnlyWhatIsNewAndAnswersAsWithoutIt() {
    TextGenerator generator = TextGenerator.builder().optMaxTokens(6).build();
    try (Model model = model("llama-rope3");
        TextSession session = generator.session(model)) {
      long[] text = longs(9, 4);
      for (int turn = 0; turn < 3; turn++) {
        long[] answer = session.generate(text);
        assertThat(answer).isEqualTo(generator.generate(model, text));
        long[] both = Arrays.copyOf(text, text.length + answer.length + 2);
        System.arraycopy(answer, 0, both, text.length, answer.length);
        // The last token of the answer was not fed, nor are those of the next turn.
        assertThat(session.known(both)).isEqualTo(text.length + answer.length - 1);
        text = both;
      }
      long[] other = text.clone();
      other[5] = 50;
      assertThat(session.known(other)).isEqualTo(5);
      assertThat(session.generate(other)).isEqualTo(generator.generate(model, other));
      assertThat(session.generate(other)).isEqualTo(generator.generate(model, other));
      long[] shorter = Arrays.copyOf(other, 3);
      assertThat(session.generate(shorter)).isEqualTo(generator.generate(model, shorter));
    }
  }

  @Test
  void whatTextsHaveComputedIsFreedWhenTheyEnd() {
    TextGenerator generator = TextGenerator.builder().optMaxTokens(3).build();
    try (Model model = model("llama")) {
      int before = model.getNDManager().getManagedArrays().size();
      try (TextSession session = generator.session(model)) {
        assertThat(session.generate(3, 4, 5)).isEqualTo(generator.generate(model, 3, 4, 5));
        assertThat(model.getNDManager().getManagedArrays()).hasSizeGreaterThan(before);
      }
      assertThat(model.getNDManager().getManagedArrays()).hasSize(before);
    }
  }

  @Test
  void aClosedModelOrSessionIsMisuse() {
    TextGenerator generator = TextGenerator.builder().optMaxTokens(3).build();
    Model model = model("llama");
    TextSession session = generator.session(model);
    PrimitiveIterator.OfLong tokens = session.tokens(3, 4);
    assertThat(tokens.nextLong()).isNotNegative();
    session.close();
    assertThat(tokens.hasNext()).isFalse();
    assertThatThrownBy(() -> session.generate(3, 4))
        .isInstanceOf(MisuseException.class)
        .hasMessage("this session, or its model, is closed");
    model.close();
    assertThatThrownBy(() -> generator.generate(model, 3, 4))
        .isInstanceOf(MisuseException.class)
        .hasMessage("the model is closed");
  }

  @Test
  void whoeverAsksNoMoreEndsAText() {
    TextGenerator generator = TextGenerator.builder().optMaxTokens(6).build();
    try (Model model = model("llama");
        TextSession session = generator.session(model)) {
      long[] whole = generator.generate(model, 3, 4, 5);
      PrimitiveIterator.OfLong tokens = session.tokens(3, 4, 5);
      assertThat(tokens.nextLong()).isEqualTo(whole[0]);
      assertThat(tokens.hasNext()).isTrue();
      assertThat(tokens.nextLong()).isEqualTo(whole[1]);
      assertThat(tokens.hasNext()).isTrue();
      assertThat(session.generate(3, 4, 5)).isEqualTo(whole);
      assertThat(tokens.hasNext()).isFalse();
      assertThatThrownBy(tokens::nextLong).isInstanceOf(NoSuchElementException.class);
    }
  }

  @Test
  void aTextThatIsCancelledEndsWithTheTokensThatItHas() {
    AtomicInteger passes = new AtomicInteger();
    TextGenerator cancelled =
        TextGenerator.builder().optCancel(() -> passes.incrementAndGet() > 3).build();
    try (Model model = model("llama")) {
      long[] whole = TextGenerator.builder().build().generate(model, 1, 2);
      assertThat(cancelled.generate(model, 1, 2)).isEqualTo(Arrays.copyOf(whole, 3));
      assertThat(cancelled.generate(model, 1, 2)).isEmpty();
      passes.set(0);
      assertThat(cancelled.generate(model, List.of(new long[] {1, 2}, new long[] {9})).getFirst())
          .isEqualTo(Arrays.copyOf(whole, 3));
    }
  }

  @Test
  void aTextThatWasCancelledDoesNotGoOn() {
    AtomicBoolean cancelled = new AtomicBoolean();
    TextGenerator generator = TextGenerator.builder().optCancel(cancelled::get).build();
    try (Model model = model("llama");
        TextSession session = generator.session(model)) {
      PrimitiveIterator.OfLong tokens = session.tokens(1, 2);
      assertThat(tokens.nextLong()).isNotNegative();
      cancelled.set(true);
      assertThat(tokens.hasNext()).isFalse();
      cancelled.set(false);
      assertThat(tokens.hasNext()).isFalse();
    }
  }

  @Test
  void thePenaltyOfRepetitionsCountsThePromptsTokens() {
    try (Model model = model("llama")) {
      // The text goes round in a circle, so its last token is one of the prompt's.
      long[] text = TextGenerator.builder().optMaxTokens(90).build().generate(model, 9, 8);
      long[] prompt = Arrays.copyOf(text, text.length - 1);
      assertThat(prompt).contains(text[prompt.length]);
      TextGenerator penalised =
          TextGenerator.builder().optMaxTokens(1).optRepetitionPenalty(100).build();
      assertThat(prompt).doesNotContain(penalised.generate(model, prompt));
    }
  }

  @Test
  void misuseIsNamed() throws TranslateException {
    TextGenerator greedy = TextGenerator.builder().build();
    try (Model llama = model("llama");
        Model bert = model("bert")) {
      assertThatThrownBy(() -> greedy.generate(bert, 1))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("only a decoder with its head continues texts")
          .hasMessageEndingWith("must be a CausalBlock (was TextBlock)");
      assertThatThrownBy(() -> greedy.generate(llama, 261))
          .hasMessageContaining("a token of the prompt must be 0 to 260 (was 261)");
      assertThatThrownBy(() -> greedy.generate(llama))
          .hasMessageContaining("number of tokens of the prompt must be 1 to 128 (was 0)");
      assertThatThrownBy(() -> greedy.generate(llama, new long[129]))
          .hasMessage("the prompt has 129 tokens, and the model 128 positions, by its config.json");
      assertThatThrownBy(() -> greedy.generate(llama, (long[]) null))
          .hasMessage("prompt must be given (was null)");
      assertThatThrownBy(() -> greedy.generate(llama, Arrays.asList(new long[] {1}, null)))
          .hasMessage("prompt must be given (was null)");
    }
    assertThatThrownBy(() -> TextGenerator.builder().optTemperature(-1))
        .hasMessage("optTemperature must be 0 to 1000 (was -1.0)");
    assertThatThrownBy(() -> TextGenerator.builder().optTopK(3).build())
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "optTopK (3), optTopP (1.0) and optMinP (0.0) choose tokens to draw from, which needs"
                + " optTemperature above 0 (was 0)");
    assertThatThrownBy(() -> TextGenerator.builder().optMinP(0.5).build())
        .isInstanceOf(MisuseException.class);
  }
}
