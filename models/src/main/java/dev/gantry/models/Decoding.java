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
import java.util.function.BooleanSupplier;

/// Feeds a batch of texts to a model, and holds the cache of what it has been fed. For one thread.
final class Decoding implements AutoCloseable {
  /// The most tokens of one pass.
  private static final int MAX_AT_ONCE = 256;

  /// A pass holds an attention score for each of its tokens and each token before, in each head: a long prompt goes in
  /// pieces of fewer tokens towards its end.
  private static final int MAX_SCORES_OF_A_HEAD = 1 << 19;

  private static final int MIN_AT_ONCE = 64;

  private final CausalBlock block;
  private final NDManager manager;
  private final KeyValueCache cache;
  private final ParameterStore store;

  /// The tokens that each text was fed, of which the cache holds the first.
  private long[][] fed;

  /// @param padding how many tokens before each text are none
  Decoding(Model model, long... padding) {
    block = block(model);
    manager = model.getNDManager().newSubManager();
    cache = new KeyValueCache(manager, padding);
    store = new ParameterStore(manager, false);
    fed = new long[padding.length][0];
  }

  private static CausalBlock block(Model model) {
    MisuseException.requireGiven("model", model);
    if (model.getBlock() instanceof CausalBlock block) {
      return block;
    }
    throw new MisuseException(
        "the model's block must be a CausalBlock, as of a decoder with its head (was "
            + model.getBlock().getClass().getName()
            + ")");
  }

  /// How many tokens a text of the model may have besides these.
  ///
  /// @throws MisuseException if these are none or too many, or one has an id that the model does not know
  static int room(Model model, long... text) {
    CausalBlock block = block(model);
    MisuseException.requireRange(
        "number of tokens of the prompt",
        MisuseException.requireGiven("prompt", text).length,
        1,
        block.maxPositions());
    for (long id : text) {
      MisuseException.requireRange("a token of the prompt", id, 0, block.vocabularySize() - 1L);
    }
    return block.maxPositions() - text.length;
  }

  KeyValueCache cache() {
    return cache;
  }

  /// How many tokens at the beginning of each text the cache holds.
  int known(long[]... texts) {
    int known = Math.toIntExact(cache.length());
    for (int i = 0; i < texts.length; i++) {
      int differs = Arrays.mismatch(Arrays.copyOf(fed[i], known), texts[i]);
      known = differs < 0 ? known : differs;
    }
    return known;
  }

  /// Feeds what the cache does not hold of texts, their last tokens in any case, and chooses the tokens that follow. Where a
  /// text becomes so long that the rotary embedding of all its tokens changes, it is fed from its beginning.
  ///
  /// @param texts of one length, which nobody changes
  /// @param cancelled is asked between passes
  /// @return one token for each text, or none if it was cancelled
  long[] next(long[][] texts, TokenChooser chooser, BooleanSupplier cancelled) {
    int from = Math.min(known(texts), texts[0].length - 1);
    cache.truncate(from);
    fed = texts.clone();
    int length = fed[0].length;
    if (block instanceof DecoderBlock decoder && decoder.turnsAnew(cache.expected(), length)) {
      cache.truncate(0);
      from = 0;
    }
    cache.expect(length);
    while (!cancelled.getAsBoolean()) {
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

  /// A text that has another token behind it.
  static long[] with(long token, long... text) {
    long[] longer = Arrays.copyOf(text, text.length + 1);
    longer[text.length] = token;
    return longer;
  }

  private static NDArray ids(NDManager pass, long[][] tokens, int from, int to) {
    long[] ids = new long[tokens.length * (to - from)];
    for (int i = 0; i < tokens.length; i++) {
      System.arraycopy(tokens[i], from, ids, i * (to - from), to - from);
    }
    return pass.create(ids, new Shape(tokens.length, to - from));
  }

  /// Frees the cache.
  @Override
  public void close() {
    cache.close();
    manager.close();
  }
}
