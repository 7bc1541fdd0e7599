// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.texts;

import dev.gantry.models.HubModel;
import dev.gantry.models.TextEmbedder;
import dev.gantry.samples.Usage;
import java.util.List;
import java.util.Locale;

/// Turns texts into vectors, and prints how similar each text is to the first.
///
/// `FOLDER` is a folder that sentence-transformers wrote, or an encoder with `config.json`,
/// safetensors and `tokenizer.json`. It may also be a name on the hub, `hf://OWNER/NAME`.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' EmbedTexts.java FOLDER TEXT TEXT …
/// ```
public final class EmbedTexts {
  private EmbedTexts() {}

  public static void main(String[] arguments) {
    Usage.check("EmbedTexts.java FOLDER TEXT TEXT …", arguments);
    String folder = arguments[0];
    List<String> texts = List.of(arguments).subList(1, arguments.length);
    try (TextEmbedder embedder = HubModel.of(folder).embedder()) {
      float[][] vectors = embedder.embed(texts);
      for (int i = 0; i < vectors.length; i++) {
        double alike = embedder.similarity(vectors[0], vectors[i]);
        System.out.printf(Locale.ROOT, "%.4f %s%n", alike, texts.get(i));
      }
    }
  }
}
