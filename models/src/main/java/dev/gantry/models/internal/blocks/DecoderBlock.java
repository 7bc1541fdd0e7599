// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.training.ParameterStore;
import dev.gantry.core.MisuseException;
import dev.gantry.models.internal.blocks.Description.Tokens;
import dev.gantry.models.internal.blocks.Description.Vocabulary;
import dev.gantry.models.spi.CausalBlock;
import dev.gantry.models.spi.KeyValueCache;

/// A language model in which a token sees only the tokens before it.
///
/// The block has separate parameters for query, key and value, and weights as `[outputs, inputs]`,
/// as DJL has them. If a file holds the three as one tensor, or weights as `[inputs, outputs]`,
/// the load splits and transposes them.
public final class DecoderBlock extends TextBlock implements CausalBlock {
  public DecoderBlock(Description description, Tokens sizes) {
    super(description, sizes);
  }

  @Override
  public NDArray nextScores(ParameterStore store, NDArray ids, KeyValueCache cache) {
    if (!(description().outputs().getFirst().scores() instanceof Vocabulary)) {
      throw new MisuseException("this model has no head that scores the tokens of its vocabulary");
    }
    TextInputs only = TextInputs.of(new NDList(ids), 1);
    long all = cache.length() + ids.getShape().get(1);
    TextInputs text = new TextInputs(only.ids(), cache.mask(ids.getManager(), all), null);
    return kept(
            ids.getManager(),
            () -> {
              Pass pass = pass(store, ids, false);
              return outputs(states(text, pass, cache), text, pass);
            })
        .singletonOrThrow();
  }

  /// Whether a text that grows from one length to another must be computed anew.
  public boolean turnsAnew(long from, long to) {
    return from > 0
        && description().layers().stream()
            .map(Description.Layer::rotation)
            .anyMatch(rotation -> rotation != null && rotation.kind().changes(from, to));
  }

  @Override
  public int vocabularySize() {
    return text().vocabulary();
  }

  @Override
  public int maxPositions() {
    return text().positions().longest();
  }
}
