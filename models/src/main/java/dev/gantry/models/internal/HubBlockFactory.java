// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal;

import ai.djl.Model;
import ai.djl.nn.Block;
import ai.djl.nn.BlockFactory;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import dev.gantry.models.HubModel;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/// Makes the block of a folder of the hub, and loads its weights. The engine `Gantry` finds this
/// class by the service loader, and calls it for a model that has no block.
public final class HubBlockFactory implements BlockFactory {
  private static final long serialVersionUID = 1;

  @Override
  public Block newBlock(Model model, Path folder, Map<String, ?> arguments) throws IOException {
    HubModel hub = HubModel.of(folder);
    BlockFactory blocks =
        (_, _, _) -> {
          Block block = hub.newBlock();
          block.freezeParameters(true);
          return block;
        };
    return Weights.blockFactory(blocks, hub.names(), LoadOptions.defaults(), hub.inputShapes())
        .newBlock(model, hub.folder(), arguments);
  }
}
