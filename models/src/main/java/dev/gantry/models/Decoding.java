// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.ParameterStore;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.models.internal.blocks.DecoderBlock;
import dev.gantry.models.internal.sampling.TokenChooser;
import dev.gantry.models.spi.CausalBlock;
import dev.gantry.models.spi.KeyValueCache;
import java.util.Arrays;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Continues a batch of texts with a model, and owns the cache of the keys and values computed so
/// far. Not thread-safe.
final class Decoding implements AutoCloseable {
  /// Stands for the next token of a text that has ended.
  static final long NONE = -1;

  /// The number of generated tokens for which the cache allocates capacity at once; beyond it, the
  /// cache doubles.
  private static final int EXPECTED_TOKENS = 1024;

  /// The most tokens of one pass.
  private static final int MAX_AT_ONCE = 256;

  /// A pass holds, for each head, an attention score of each of its tokens with each earlier
  /// token. For that reason, pieces of a long prompt become shorter towards its end.
  private static final int MAX_SCORES_OF_A_HEAD = 1 << 19;

  private static final int MIN_AT_ONCE = 64;

  private final TextGenerator generator;
  private final CausalBlock block;
  private final NDManager manager;
  private final KeyValueCache cache;
  private final ParameterStore store;
  private TokenChooser chooser;

  /// The texts so far, padded to one length. The arrays are never changed.
  private final long[][] texts;

  /// How many more tokens each text may get.
  private final int[] left;

  /// The tokens of each text that were fed to the model; the cache holds the first of them.
  private long[][] fed;

  /// @param padding for each text, how many padding tokens come before it
  Decoding(Model model, TextGenerator generator, long... padding) {
    this.generator = generator;
    block = block(model);
    requireOpen("the model", model.getNDManager());
    manager = model.getNDManager().newSubManager();
    cache = new KeyValueCache(manager, padding);
    store = new ParameterStore(manager, false);
    chooser = generator.chooser(padding.length);
    texts = new long[padding.length][0];
    left = new int[padding.length];
    fed = texts.clone();
  }

  /// Begins to continue texts. The longest text has no padding.
  ///
  /// @throws MisuseException if a text is empty or too long, or has an id that the model does not
  ///     know
  void begin(long[]... prompts) {
    requireOpen("this session, or its model,", manager);
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

  private static void requireOpen(String subject, NDManager manager) {
    if (!manager.isOpen()) {
      throw new MisuseException(subject + " is closed");
    }
  }

  /// Returns the next token of each text, [#NONE] for a text that has ended. The array is empty
  /// after all have ended, or after a cancel.
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

  /// Returns how many tokens at the beginning of each text are in the cache.
  int known(long[]... of) {
    int known = Math.toIntExact(cache.length());
    for (int i = 0; i < of.length; i++) {
      int differs = Arrays.mismatch(Arrays.copyOf(fed[i], known), of[i]);
      known = differs < 0 ? known : differs;
    }
    return known;
  }

  /// Feeds the tokens of the texts that the cache lacks, at least the last one, and chooses the
  /// next tokens. If a text has become so long that the rotary embedding of all its tokens
  /// changes, the text is fed again from its beginning.
  ///
  /// @return one token for each text; empty if the generation was cancelled
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
        NDArray scores = scores(ids(pass, fed, from, Math.min(to, length)));
        if (to >= length) {
          return chooser.next(scores);
        }
      }
      from = to;
    }
    return new long[0];
  }

  /// If a pass fails, the cache forgets what its first layers have computed: the others lack it.
  private NDArray scores(NDArray ids) {
    long known = cache.length();
    return Cleanup.orUndo(() -> block.nextScores(store, ids, cache), () -> cache.truncate(known));
  }

  private static NDArray ids(NDManager pass, long[][] tokens, int from, int to) {
    long[] ids = new long[tokens.length * (to - from)];
    for (int i = 0; i < tokens.length; i++) {
      System.arraycopy(tokens[i], from, ids, i * (to - from), to - from);
    }
    return pass.create(ids, new Shape(tokens.length, to - from));
  }

  /// Frees the cache, whose manager is a submanager of this one's.
  @Override
  public void close() {
    manager.close();
  }
}
