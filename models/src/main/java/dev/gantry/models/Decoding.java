// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.ParameterStore;
import dev.gantry.core.MisuseException;
import dev.gantry.models.internal.blocks.DecoderBlock;
import dev.gantry.models.internal.sampling.TokenChooser;
import dev.gantry.models.spi.CausalBlock;
import dev.gantry.models.spi.KeyValueCache;
import java.util.Arrays;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Continues a batch of texts by a model, and holds the cache of what it has been fed. For one thread.
final class Decoding implements AutoCloseable {
  /// The number that stands for the token of a text that has ended.
  static final long NONE = -1;

  /// How many generated tokens get room in the cache at once; for more, it doubles.
  private static final int EXPECTED_TOKENS = 1024;

  /// The most tokens of one pass.
  private static final int MAX_AT_ONCE = 256;

  /// A pass holds an attention score for each of its tokens and each token before, in each head: a long prompt goes in
  /// pieces of fewer tokens towards its end.
  private static final int MAX_SCORES_OF_A_HEAD = 1 << 19;

  private static final int MIN_AT_ONCE = 64;

  private final TextGenerator generator;
  private final CausalBlock block;
  private final NDManager manager;
  private final KeyValueCache cache;
  private final ParameterStore store;
  private TokenChooser chooser;

  /// The texts so far, of one length with their padding; nobody changes an array.
  private final long[][] texts;

  /// How many more tokens each text gets.
  private final int[] left;

  /// The tokens that each text was fed, of which the cache holds the first.
  private long[][] fed;

  /// @param padding how many tokens before each text are none
  Decoding(Model model, TextGenerator generator, long... padding) {
    this.generator = generator;
    block = block(model);
    manager = model.getNDManager().newSubManager();
    cache = new KeyValueCache(manager, padding);
    store = new ParameterStore(manager, false);
    chooser = generator.chooser(padding.length);
    texts = new long[padding.length][0];
    left = new int[padding.length];
    fed = texts.clone();
  }

  /// Begins to continue texts, of which the longest one has no padding.
  ///
  /// @throws MisuseException if one is empty or too long, or has an id that the model does not know
  void begin(long[]... prompts) {
    for (int i = 0; i < left.length; i++) {
      left[i] = Math.min(generator.tokens(), room(prompts[i]));
    }
    chooser = generator.chooser(left.length);
    int longest = Stream.of(prompts).mapToInt(prompt -> prompt.length).max().orElseThrow();
    for (int i = 0; i < left.length; i++) {
      long[] prompt = prompts[i];
      texts[i] = new long[longest];
      System.arraycopy(prompt, 0, texts[i], longest - prompt.length, prompt.length);
      chooser.saw(i, prompt);
    }
    int most = IntStream.of(left).max().orElseThrow();
    cache.reserve((long) longest + Math.min(most, EXPECTED_TOKENS));
  }

  /// The next token of each text, [#NONE] where it has ended; none once all have, or after a cancel.
  long[] next() {
    long[] chosen = IntStream.of(left).anyMatch(count -> count > 0) ? chosen() : new long[0];
    if (chosen.length == 0) {
      Arrays.fill(left, 0);
    }
    for (int i = 0; i < chosen.length; i++) {
      long token = chosen[i];
      texts[i] = Arrays.copyOf(texts[i], texts[i].length + 1);
      texts[i][texts[i].length - 1] = token;
      chooser.saw(i, token);
      chosen[i] = left[i] > 0 ? token : NONE;
      left[i] = generator.isEnd(token) ? 0 : Math.max(0, left[i] - 1);
    }
    return chosen;
  }

  private static CausalBlock block(Model model) {
    MisuseException.requireGiven("model", model);
    if (model.getBlock() instanceof CausalBlock block) {
      return block;
    }
    throw new MisuseException(
        "only a decoder with its head continues texts, such as LlamaForCausalLM: the model's block"
            + " must be a CausalBlock (was "
            + model.getBlock().getClass().getSimpleName()
            + ")");
  }

  private int room(long... text) {
    int tokens = MisuseException.requireGiven("prompt", text).length;
    if (tokens > block.maxPositions()) {
      throw new MisuseException(
          "the prompt has "
              + tokens
              + " tokens, and the model "
              + block.maxPositions()
              + " positions, by its config.json");
    }
    MisuseException.requireRange("number of tokens of the prompt", tokens, 1, block.maxPositions());
    for (long id : text) {
      MisuseException.requireRange("a token of the prompt", id, 0, block.vocabularySize() - 1L);
    }
    return block.maxPositions() - text.length;
  }

  /// How many tokens at the beginning of each text the cache holds.
  int known(long[]... of) {
    int known = Math.toIntExact(cache.length());
    for (int i = 0; i < of.length; i++) {
      int differs = Arrays.mismatch(Arrays.copyOf(fed[i], known), of[i]);
      known = differs < 0 ? known : differs;
    }
    return known;
  }

  /// Feeds what the cache does not hold of texts, their last tokens in any case, and chooses the tokens that follow. Where a
  /// text becomes so long that the rotary embedding of all its tokens changes, it is fed from its beginning.
  ///
  /// @return one token for each text, or none if it was cancelled
  private long[] chosen() {
    int from = Math.min(known(texts), texts[0].length - 1);
    cache.truncate(from);
    fed = texts.clone();
    int length = fed[0].length;
    if (block instanceof DecoderBlock decoder && decoder.turnsAnew(cache.expected(), length)) {
      cache.truncate(0);
      from = 0;
    }
    cache.expect(length);
    while (!generator.cancelled().getAsBoolean()) {
      long room = MAX_SCORES_OF_A_HEAD / Math.max(1, cache.length() + MIN_AT_ONCE);
      int to = from + Math.clamp(room, MIN_AT_ONCE, MAX_AT_ONCE);
      try (NDManager pass = manager.newSubManager()) {
        NDArray scores = block.nextScores(store, ids(pass, fed, from, Math.min(to, length)), cache);
        if (to >= length) {
          return chooser.next(scores);
        }
      }
      from = to;
    }
    return new long[0];
  }

  private static NDArray ids(NDManager pass, long[][] tokens, int from, int to) {
    long[] ids = new long[tokens.length * (to - from)];
    for (int i = 0; i < tokens.length; i++) {
      System.arraycopy(tokens[i], from, ids, i * (to - from), to - from);
    }
    return pass.create(ids, new Shape(tokens.length, to - from));
  }

  /// Frees the cache, whose manager is below this one's.
  @Override
  public void close() {
    manager.close();
  }
}
