// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.texts;

import ai.djl.modality.Classifications;
import dev.gantry.models.HubModel;
import dev.gantry.models.TextClassifier;
import dev.gantry.models.TextOptions;
import dev.gantry.samples.Usage;
import java.util.List;
import java.util.Locale;

/// Prints the most probable label of each text.
///
/// `FOLDER` is a sequence classifier. It may also be a name on the hub, `hf://OWNER/NAME`.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' ClassifyTexts.java FOLDER TEXT …
/// ```
public final class ClassifyTexts {
  private ClassifyTexts() {}

  public static void main(String[] arguments) {
    Usage.check("ClassifyTexts.java FOLDER TEXT …", arguments);
    String folder = arguments[0];
    List<String> texts = List.of(arguments).subList(1, arguments.length);
    TextOptions options =
        TextOptions.builder()
            .optMaxLength(256) // in tokens; what is longer is cut off
            .optBatchTokens(4096) // at once on the device
            .build();
    try (TextClassifier classifier = HubModel.of(folder).classifier(options)) {
      List<Classifications> answers = classifier.classify(texts);
      for (int i = 0; i < answers.size(); i++) {
        Classifications.Classification best = answers.get(i).best();
        System.out.printf(
            Locale.ROOT, "%s %.3f %s%n", best.getClassName(), best.getProbability(), texts.get(i));
      }
    }
  }
}
