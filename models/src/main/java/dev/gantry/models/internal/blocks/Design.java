// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.nn.Block;

/// The design of a block: equal designs make blocks that compute alike.
public interface Design {
  /// Makes a block whose parameters have no values yet; a load or `initialize` sets them.
  Block newBlock();
}
