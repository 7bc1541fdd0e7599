// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static dev.gantry.formats.TensorTransform.part;
import static dev.gantry.formats.TensorTransform.reshape;
import static dev.gantry.formats.TensorTransform.slice;
import static dev.gantry.formats.TensorTransform.transpose;

import dev.gantry.core.MisuseException;
import dev.gantry.djl.ParameterNames;
import dev.gantry.formats.TensorTransform;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.IntStream;

/// Names the tensors of the hub's files that fill the parameters of known blocks, including some
/// of DJL's own. The rules are in `names.txt`.
public final class HubNames {
  private static final Map<String, List<String>> SECTIONS = ResourceLines.sections("names.txt");

  private HubNames() {}

  /// Says which weights compute the scores of tokens.
  enum Head {
    OWN,
    TIED,
    NONE
  }

  /// Returns the names for the block of a known architecture.
  ///
  /// @param words the values of the words in the section that stand for numbers
  static ParameterNames of(String section, Map<String, String> words, Head head) {
    ParameterNames.Builder names = ParameterNames.builder();
    add(section, words, head, names);
    return names.build();
  }

  /// @param words for each such word of the section, the text that replaces it
  private static void add(
      String section, Map<String, String> words, Head head, ParameterNames.Builder names) {
    for (String line : ResourceLines.lines(SECTIONS, section)) {
      String[] part = line.split(" ", -1);
      words.forEach((word, meant) -> Arrays.setAll(part, i -> part[i].replace(word, meant)));
      switch (part[0]) {
        case "rule" -> names.rule(part[1], part[2], transforms(part));
        case "opt" -> names.optRule(part[1], part[2], transforms(part));
        case "join" ->
            names.concat(part[2], Integer.parseInt(part[1]), List.of(part).subList(3, part.length));
        case "stack" -> stack(Integer.parseInt(part[1]), part[2], part[3], names);
        case "convolution" -> convolution(part, names);
        case "head" -> head(head, part[1], part[2], names);
        case "prefix" -> names.optPrefix(part[1]);
        case "alias" -> names.alias(part[1], part[2]);
        case "ignore" -> names.ignore(part[1]);
        case "constant" -> names.constant(part[1], Float.parseFloat(part[2]));
        default -> throw new IllegalStateException(line);
      }
    }
  }

  /// Parses the transforms of a rule's tensor, such as `part:0,1,3`, in their order.
  private static TensorTransform[] transforms(String... rule) {
    return Arrays.stream(rule).skip(3).map(HubNames::transform).toArray(TensorTransform[]::new);
  }

  private static TensorTransform transform(String written) {
    String[] word = written.split("[:,]", -1);
    long[] numbers = Arrays.stream(word).skip(1).mapToLong(Long::parseLong).toArray();
    return switch (word[0]) {
      case "transpose" -> transpose();
      case "part" -> part((int) numbers[0], (int) numbers[1], (int) numbers[2]);
      case "slice" -> slice((int) numbers[0], numbers[1], numbers[2]);
      case "reshape" -> reshape(numbers);
      default -> throw new IllegalStateException(written);
    };
  }

  /// Adds a rule that concatenates the vectors of all heads into one parameter.
  private static void stack(
      int count, String parameter, String tensor, ParameterNames.Builder names) {
    List<String> tensors =
        IntStream.range(0, count).mapToObj(i -> tensor.replace("<j>", "" + i)).toList();
    names.optConcat(parameter, 0, tensors, reshape(1, -1));
  }

  /// Adds rules for a convolution and the normalisation after it, a pair that only some blocks
  /// have.
  private static void convolution(String[] part, ParameterNames.Builder names) {
    names
        .optRule(part[1] + "weight", part[3] + "weight")
        .optRule(part[2] + "gamma", part[4] + "weight")
        .optRule(part[2] + "beta", part[4] + "bias")
        .optRule(part[2] + "runningMean", part[4] + "running_mean")
        .optRule(part[2] + "runningVar", part[4] + "running_var");
  }

  /// Adds the rule for the weights that compute the scores of tokens. A file may have such weights
  /// that differ from the embedding's, so the kind of head decides what happens to them.
  private static void head(
      Head head, String parameter, String tensor, ParameterNames.Builder names) {
    switch (head) {
      case OWN -> names.rule(parameter, tensor);
      case TIED ->
          names.refuse(
              tensor,
              "the block's scores are by the embedding's weights, and the file's by this tensor;"
                  + " load the file into a new block");
      case NONE -> names.ignore(tensor);
    }
  }

  /// Returns the names for DJL's own `ai.djl.nn.transformer.BertBlock`, from files of BERT.
  ///
  /// The block has BERT's shapes but computes differently. It normalises over the batch, where
  /// BERT normalises each hidden state. It adds the layer's input twice, and it accepts only texts
  /// of the maximum length. For that reason its answers are not BERT's, but it can be trained
  /// further from these weights. The statistics of its batch normalisation, which BERT does not
  /// have, become mean 0 and variance 1. The block of [HubModel] answers as BERT does.
  public static ParameterNames djlBert() {
    return of(
        "djl-bert",
        Map.of("<block>", "{j}transformer_{i}_", "<tensor>", "encoder.layer.{i}."),
        Head.NONE);
  }

  /// Returns the names for DJL's own `ai.djl.nn.transformer.TransformerEncoderBlock`, from one
  /// layer of a file of BERT. The block computes differently from BERT, as described at
  /// [#djlBert].
  ///
  /// @param layer the prefix of the names of the layer's tensors, such as `encoder.layer.0.`
  public static ParameterNames djlEncoder(String layer) {
    MisuseException.requireGiven("layer", layer);
    ParameterNames.Builder names = ParameterNames.builder().ignore("{any*}");
    add("bert-files", Map.of(), Head.NONE, names);
    add("djl-encoder", Map.of("<block>", "", "<tensor>", layer), Head.NONE, names);
    return names.build();
  }

  /// Returns the names for `ResNetV1` of DJL's model zoo, made for images of more than 32 pixels, from files
  /// of `ResNetForImageClassification`.
  ///
  /// DJL's block has the stride in the first convolution of a bottleneck. It answers as the file's
  /// model, to some 1e-4 (the epsilons differ), if `downsample_in_bottleneck` of `config.json` is
  /// true. Most files have the stride in the middle convolution; the block of [HubModel] supports
  /// both. DJL's biases, which the files do not have, become 0.
  ///
  /// @param layers 50, 101 or 152; with 18 or 34 layers, DJL's block has bottlenecks, and no file
  ///     fits
  /// @throws MisuseException for another number of layers
  public static ParameterNames djlResnet(int layers) {
    return djlResnet(layers, "-hub");
  }

  /// Returns the names for the block of [#djlResnet(int)], from files with torchvision's names,
  /// such as `layer1.0.conv1.weight`. Files of torchvision's own models have the stride in the
  /// middle convolution.
  ///
  /// @throws MisuseException as [#djlResnet(int)]
  public static ParameterNames djlResnetOfTorchvision(int layers) {
    return djlResnet(layers, "-torchvision");
  }

  private static ParameterNames djlResnet(int layers, String files) {
    List<Integer> depths =
        switch (layers) {
          case 50 -> List.of(3, 4, 6, 3);
          case 101 -> List.of(3, 4, 23, 3);
          case 152 -> List.of(3, 8, 36, 3);
          default ->
              throw new MisuseException("layers must be 50, 101 or 152 (was " + layers + ")");
        };
    ParameterNames.Builder names = ParameterNames.builder();
    int place = 5;
    for (int stage = 0; stage < depths.size(); stage++) {
      for (int layer = 0; layer < depths.get(stage); layer++) {
        Map<String, String> words =
            Map.of(
                "<block>", number(place++),
                "<stage>", "" + stage,
                "<next>", "" + (stage + 1),
                "<layer>", "" + layer);
        add("djl-unit" + files, words, Head.NONE, names);
        if (layer == 0) {
          add("djl-shortcut" + files, words, Head.NONE, names);
        }
      }
    }
    add("djl-resnet" + files, Map.of("<block>", number(place + 2)), Head.NONE, names);
    return names.build();
  }

  private static String number(int place) {
    return String.format(Locale.ROOT, "%02d", place);
  }
}
