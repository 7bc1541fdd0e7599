// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.nn.Block;

/// What decides how a block computes: equal designs make blocks that answer alike.
public interface Design {
  /// Makes a block without values: a load or `initialize` gives them.
  Block newBlock();
}
