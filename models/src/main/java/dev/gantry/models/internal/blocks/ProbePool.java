// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.Parameter;
import dev.gantry.models.internal.blocks.NamedBlock.Dense;
import dev.gantry.models.internal.blocks.NamedBlock.Norm;
import dev.gantry.models.internal.blocks.NamedBlock.Part;
import dev.gantry.models.internal.blocks.NamedBlock.Pass;

/// Pools hidden states as SigLIP does for images: a learned query attends to all states, and a
/// feed-forward part follows.
///
/// @param probe `[1, 1, width]`
record ProbePool(
    Parameter probe,
    Dense query,
    Dense key,
    Dense value,
    Dense output,
    Norm norm,
    Part feed,
    Attention attention) {
  static ProbePool of(TransformerBlock block) {
    Description description = block.description();
    int width = description.width();
    return new ProbePool(
        block.parameter("probe", Parameter.Type.WEIGHT, 1, 1, width),
        block.dense("probeQuery", width, width, true),
        block.dense("probeKey", width, width, true),
        block.dense("probeValue", width, width, true),
        block.dense("probeOutput", width, width, true),
        block.norm("probeNorm", width),
        block.feed("probe_", description.feedForward().hidden()),
        new Attention(
            description.attention(),
            1 / Math.sqrt(description.attention().size()),
            Attention.Mask.NOTHING,
            null,
            null));
  }

  /// @param states `[batch, length, width]`
  /// @return `[batch, width]`
  NDArray of(NDArray states, Pass pass) {
    int heads = attention.kind().heads();
    NDArray asked =
        query
            .of(pass.value(probe), pass)
            .broadcast(states.getShape().get(0), 1, states.getShape().get(2));
    NDArray attended =
        output.of(
            attention.attend(
                Attention.heads(asked, heads),
                Attention.heads(key.of(states, pass), heads),
                Attention.heads(value.of(states, pass), heads),
                null),
            pass);
    return attended.add(feed.of(norm.of(attended, pass), pass)).squeeze(1);
  }
}
