// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.texts;

import ai.djl.Model;
import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import dev.gantry.models.HubModel;
import dev.gantry.models.TextGenerator;
import dev.gantry.samples.Usage;
import java.io.IOException;
import java.util.Map;

/// Continues a text with a decoder, such as a Llama.
///
/// `FOLDER` has the hub's files: `config.json`, safetensors and `tokenizer.json`. It may also be a
/// name on the hub, `hf://OWNER/NAME`.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' GenerateText.java FOLDER TEXT
/// ```
public final class GenerateText {
  private GenerateText() {}

  public static void main(String[] arguments) throws IOException {
    Usage.check("GenerateText.java FOLDER TEXT", arguments);
    String folder = arguments[0];
    String text = arguments[1];
    HubModel hub = HubModel.of(folder);
    try (HuggingFaceTokenizer tokenizer =
            HuggingFaceTokenizer.newInstance(
                // DJL would cut texts off after 512 tokens.
                hub.folder().resolve("tokenizer.json"), Map.of("truncation", "false"));
        Model model = hub.load()) {
      long[] prompt = tokenizer.encode(text).getIds();
      TextGenerator generator =
          TextGenerator.builder()
              .optMaxTokens(40)
              .optTemperature(0.8) // without, the best token always follows
              .optTopK(50)
              .optSeed(1)
              .optEnds(hub.endTokens())
              .build();
      long[] generated = generator.generate(model, prompt);
      System.out.println(text + " " + tokenizer.decode(generated));
    }
  }
}
