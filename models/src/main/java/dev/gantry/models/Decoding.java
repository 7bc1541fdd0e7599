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
  Decoding(Model model, int... padding) {
    block = block(model);
    manager = model.getNDManager().newSubManager();
    long[] counts = new long[padding.length];
    for (int i = 0; i < counts.length; i++) {
      counts[i] = padding[i];
    }
    cache = new KeyValueCache(manager, counts);
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

  /// Feeds tokens, and chooses those that follow. Where a text becomes so long that the rotary embedding of all its tokens
  /// changes, it is fed from its beginning.
  ///
  /// @param tokens of each text, as many as of the others
  /// @param cancelled is asked between passes
  /// @return one for each text, or none if it was cancelled
  long[] next(long[][] tokens, TokenChooser chooser, BooleanSupplier cancelled) {
    int held = Math.toIntExact(cache.length());
    for (int i = 0; i < fed.length; i++) {
      fed[i] = joined(fed[i], held, tokens[i]);
    }
    int length = fed[0].length;
    int from = held;
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

  private static long[] joined(long[] before, int held, long... after) {
    long[] all = Arrays.copyOf(before, held + after.length);
    System.arraycopy(after, 0, all, held, after.length);
    return all;
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
