// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.transformer.BertBlock;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.LoadReport;
import dev.gantry.djl.Weights;
import dev.gantry.models.HubNames;
import java.nio.file.Path;

/// Loads BERT's weights into DJL's own `BertBlock`, to train it on.
///
/// `FOLDER` is as the hub has it, with safetensors of these sizes:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' LoadBertBlock.java FOLDER
/// ```
public final class LoadBertBlock {
  private LoadBertBlock() {}

  public static void main(String[] arguments) {
    Usage.check("LoadBertBlock.java FOLDER", arguments);
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(Path.of(arguments[0]))) {
      BertBlock bert =
          BertBlock.builder()
              .setTokenDictionarySize(205) // vocab_size of config.json
              .optTypeDictionarySize(2) // type_vocab_size
              .optEmbeddingSize(64) // hidden_size
              .optTransformerBlockCount(2) // num_hidden_layers
              .optAttentionHeadCount(4) // num_attention_heads
              .optHiddenSize(128) // intermediate_size
              .optMaxSequenceLength(64) // max_position_embeddings
              .build();
      Shape texts = new Shape(1, 64);
      LoadReport report =
          weights.load(
              manager, bert, HubNames.djlBert(), LoadOptions.defaults(), texts, texts, texts);
      report.loaded().forEach((parameter, tensor) -> System.out.println(parameter + ": " + tensor));
    }
  }
}
