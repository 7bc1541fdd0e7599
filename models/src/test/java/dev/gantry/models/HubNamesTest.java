// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ai.djl.basicmodelzoo.cv.classification.ResNetV1;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.transformer.BertBlock;
import ai.djl.nn.transformer.TransformerEncoderBlock;
import ai.djl.training.ParameterStore;
import ai.djl.util.Pair;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.LoadReport;
import dev.gantry.djl.ParameterNames;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import dev.gantry.models.internal.blocks.ResnetBlock;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// DJL's own blocks take the hub's tensors.
class HubNamesTest {
  private static final Path BERT = HubModelTest.HUB.resolve("bert");

  @TempDir private Path temporary;

  @AfterEach
  void nothingIsLeft() {
    // The session keeps pinned buffers from load to load on a GPU.
    GantrySession.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @Test
  void djlsBertBlockTakesAFolderOfTheHub() {
    Block bert =
        BertBlock.builder()
            .setTokenDictionarySize(205)
            .optTypeDictionarySize(2)
            .optEmbeddingSize(64)
            .optTransformerBlockCount(2)
            .optAttentionHeadCount(4)
            .optHiddenSize(128)
            .optMaxSequenceLength(64)
            .build();
    Shape text = new Shape(1, 64);
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(BERT)) {
      LoadReport report =
          weights.load(manager, bert, HubNames.djlBert(), LoadOptions.defaults(), text, text, text);
      assertThat(report.missing()).isEmpty();
      assertThat(report.unexpected()).isEmpty();
      NDArray ids = manager.ones(text, DataType.INT64);
      NDList inputs = new NDList(ids, ids.zerosLike(), ids);
      NDList outputs = bert.forward(new ParameterStore(manager, false), inputs, false);
      assertThat(outputs.head().getShape()).isEqualTo(new Shape(1, 64, 64));
    }
  }

  @Test
  void djlsEncoderBlockTakesOneLayer() {
    Block layer = new TransformerEncoderBlock(64, 4, 128, 0, Activation::gelu);
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(BERT)) {
      LoadReport report =
          weights.load(
              manager,
              layer,
              HubNames.djlEncoder("encoder.layer.1."),
              LoadOptions.defaults(),
              new Shape(1, 8, 64));
      assertThat(report.missing()).isEmpty();
      assertThat(report.loaded())
          .containsEntry(
              "01selfAttention_01keyProjection_bias", "encoder.layer.1.attention.self.key.bias");
    }
  }

  /// A ResNet-50 with its strides where DJL's are.
  @Test
  void djlsResnetAnswersAsOursDoes() {
    ResnetBlock.Config sizes =
        new ResnetBlock.Config(
            3,
            64,
            List.of(256, 512, 1024, 2048),
            List.of(3, 4, 6, 3),
            true,
            true,
            false,
            Activation::relu,
            10);
    Shape image = new Shape(1, 3, 64, 64);
    try (NDManager manager = NDManager.newBaseManager()) {
      Path file = temporary.resolve("model.safetensors");
      write(new ResnetBlock(sizes), manager, image, file);
      float[] ours =
          answer(
              new ResnetBlock(sizes),
              HubNames.of("resnet", Map.of(), HubNames.Head.NONE),
              manager,
              image,
              file);
      float[] djls = answer(djlResnet(), HubNames.djlResnet(50), manager, image, file);
      Path other = temporary.resolve("torchvision.safetensors");
      renamed(file, other, manager);
      float[] again =
          answer(djlResnet(), HubNames.djlResnetOfTorchvision(50), manager, image, other);
      assertThat(again).isEqualTo(djls);
      float largest = 0;
      for (float value : ours) {
        largest = Math.max(largest, Math.abs(value));
      }
      for (int i = 0; i < ours.length; i++) {
        assertThat(djls[i]).isCloseTo(ours[i], within(1e-4f * largest));
      }
    }
  }

  private static Block djlResnet() {
    return ResNetV1.builder()
        .setImageShape(new Shape(3, 64, 64))
        .setNumLayers(50)
        .setOutSize(10)
        .build();
  }

  /// Writes the initial values of the block's parameters, under the hub's names.
  private static void write(Block block, NDManager manager, Shape image, Path file) {
    block.initialize(manager, DataType.FLOAT32, image);
    Map<String, NDArray> tensors = new LinkedHashMap<>();
    for (Pair<String, Parameter> parameter : block.getParameters()) {
      tensors.put(hubName(parameter.getKey()), parameter.getValue().getArray());
    }
    WeightsWriter.builder().setFile(file).build().write(tensors);
  }

  private static String hubName(String parameter) {
    return parameter
        .replaceFirst("labels_", "classifier.1.")
        .replaceFirst("stem_", "resnet.embedder.embedder.")
        .replaceFirst("stage(.)_layer(.)_part(.)_", "resnet.encoder.stages.$1.layers.$2.layer.$3.")
        .replaceFirst("stage(.)_layer(.)_shortcut_", "resnet.encoder.stages.$1.layers.$2.shortcut.")
        .replace("conv_", "convolution.")
        .replace("norm_gamma", "normalization.weight")
        .replace("norm_beta", "normalization.bias")
        .replace("norm_runningMean", "normalization.running_mean")
        .replace("norm_runningVar", "normalization.running_var");
  }

  /// The same tensors by torchvision's names.
  private static void renamed(Path from, Path to, NDManager parent) {
    try (NDManager manager = parent.newSubManager();
        Weights weights = Weights.open(from)) {
      Map<String, NDArray> tensors = new LinkedHashMap<>();
      weights.load(manager).forEach(array -> tensors.put(torchvisionName(array.getName()), array));
      WeightsWriter.builder().setFile(to).build().write(tensors);
    }
  }

  private static String torchvisionName(String hub) {
    String name =
        Pattern.compile("resnet.encoder.stages.(.).layers.(.).(layer.(.)|shortcut).(.)\\w+")
            .matcher(hub)
            .replaceFirst(match -> {
              String layer =
                  "layer" + (Integer.parseInt(match.group(1)) + 1) + "." + match.group(2);
              boolean convolution = match.group(5).equals("c");
              return match.group(4) == null
                  ? layer + ".downsample." + (convolution ? 0 : 1)
                  : layer
                      + (convolution ? ".conv" : ".bn")
                      + (Integer.parseInt(match.group(4)) + 1);
            });
    return name.replace("resnet.embedder.embedder.convolution", "conv1")
        .replace("resnet.embedder.embedder.normalization", "bn1")
        .replace("classifier.1", "fc");
  }

  private static float[] answer(
      Block block, ParameterNames names, NDManager parent, Shape image, Path file) {
    try (NDManager manager = parent.newSubManager();
        Weights weights = Weights.open(file)) {
      weights.load(manager, block, names, LoadOptions.defaults(), image);
      NDArray pixels = manager.arange(0f, (float) image.size()).div(6000).sub(1);
      return block
          .forward(new ParameterStore(manager, false), new NDList(pixels.reshape(image)), false)
          .singletonOrThrow()
          .toFloatArray();
    }
  }

  @Test
  void otherDepthsOfDjlsResnetAreRefused() {
    assertThatThrownBy(() -> HubNames.djlResnet(18))
        .isInstanceOf(MisuseException.class)
        .hasMessage("layers must be 50, 101 or 152 (was 18)");
  }
}
