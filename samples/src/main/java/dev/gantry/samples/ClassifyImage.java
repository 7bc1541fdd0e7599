// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.Model;
import ai.djl.ModelException;
import ai.djl.inference.Predictor;
import ai.djl.modality.Classifications;
import ai.djl.modality.cv.Image;
import ai.djl.modality.cv.ImageFactory;
import ai.djl.modality.cv.transform.Normalize;
import ai.djl.modality.cv.transform.Resize;
import ai.djl.modality.cv.transform.ToTensor;
import ai.djl.modality.cv.translator.ImageClassificationTranslator;
import ai.djl.ndarray.types.Shape;
import ai.djl.translate.TranslateException;
import dev.gantry.models.HubModel;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Locale;

/// Classifies an image with a ViT or a ResNet and DJL's own translator.
///
/// `FOLDER` has the hub's files, with `config.json` and safetensors, or is a name on the hub,
/// `hf://OWNER/NAME`. The mean and deviation of the pixels are those of
/// `google/vit-base-patch16-224`; another model's are in its `preprocessor_config.json`.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' ClassifyImage.java FOLDER IMAGE
/// ```
public final class ClassifyImage {
  private static final float[] HALF = {0.5f, 0.5f, 0.5f};

  private ClassifyImage() {}

  public static void main(String[] arguments)
      throws IOException, ModelException, TranslateException {
    Usage.check("ClassifyImage.java FOLDER IMAGE", arguments);
    Image image = ImageFactory.getInstance().fromFile(Path.of(arguments[1]));
    HubModel hub = HubModel.of(arguments[0]);
    Shape images = hub.inputShapes()[0];
    if (images.dimension() != 4) {
      throw new IllegalArgumentException(arguments[0] + " takes no images; it takes " + images);
    }
    int height = (int) images.get(2);
    int width = (int) images.get(3);
    ImageClassificationTranslator translator =
        ImageClassificationTranslator.builder()
            .setImageSize(width, height)
            .addTransform(new Resize(width, height))
            .addTransform(new ToTensor())
            .addTransform(new Normalize(HALF, HALF))
            .optSynset(hub.labels())
            .optApplySoftmax(true)
            .build();
    try (Model model = hub.load();
        Predictor<Image, Classifications> predictor = model.newPredictor(translator)) {
      for (Classifications.Classification each : predictor.predict(image).topK(3)) {
        System.out.printf(Locale.ROOT, "%s %.3f%n", each.getClassName(), each.getProbability());
      }
    }
  }
}
