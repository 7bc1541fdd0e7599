// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.training.ParameterStore;
import dev.gantry.core.MisuseException;

/// A language model in which a token sees only those before it: GPT-2, with learned positions and layer normalization
/// before each part, or Llama 1 to 3, with grouped-query attention, rotary embedding, RMSNorm and SwiGLU.
///
/// GPT-2's files hold query, key and value as one tensor, and weights as `[inputs, outputs]`; this block has
/// them apart, and weights as `[outputs, inputs]`, as DJL has them.
final class DecoderBlock extends TextBlock implements CausalBlock {
  DecoderBlock(Sizes sizes) {
    super(sizes);
  }

  @Override
  public NDArray nextScores(ParameterStore store, NDArray ids, KeyValueCache cache) {
    if (head() == Head.NONE) {
      throw new MisuseException("this model has no head: it gives states, and no scores of tokens");
    }
    TextInputs text = TextInputs.of(new NDList(ids), 1);
    return kept(
            ids.getManager(),
            () -> {
              Pass pass = pass(store, ids, false);
              return outputs(states(text, pass, cache), pass);
            })
        .singletonOrThrow();
  }

  @Override
  public int vocabularySize() {
    return text().vocabulary();
  }

  @Override
  public int maxPositions() {
    return text().maxPositions();
  }
}
