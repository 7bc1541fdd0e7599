// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import dev.gantry.djl.ParameterNames;
import dev.gantry.models.HubModel.Input;
import dev.gantry.models.internal.blocks.Activations;
import dev.gantry.models.internal.blocks.ConvNextBlock;
import dev.gantry.models.internal.blocks.Description;
import dev.gantry.models.internal.blocks.Description.Output;
import dev.gantry.models.internal.blocks.Description.Patches;
import dev.gantry.models.internal.blocks.Description.Pool;
import dev.gantry.models.internal.blocks.Description.Stem;
import dev.gantry.models.internal.blocks.ResnetBlock;
import dev.gantry.models.internal.blocks.VitBlock;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;

/// The families of models of images.
final class ImageFamilies {
  private static final int MAX_PIXELS = 1 << 16;
  private static final int MAX_STAGES = 64;

  private ImageFamilies() {}

  /// @param size of an image on both sides
  private static Architecture image(
      String name,
      Object settings,
      Supplier<Block> block,
      ParameterNames names,
      List<String> outputs,
      List<String> labels,
      int channels,
      int size) {
    return new Architecture(
        name,
        settings,
        block,
        names,
        List.of(new Input("pixel_values", DataType.FLOAT32, 0, true)),
        outputs,
        labels,
        List.of(),
        List.of(new Shape(1, channels, size, size)));
  }

  static Architecture vit(HubFolder folder) {
    Draft draft = new Draft(folder);
    EncoderFamilies.sizes(draft);
    return vit(draft, "ViT", "vit", patches(draft, 224, 16, false, 1));
  }

  /// A ViT with another token before the patches, for distillation.
  static Architecture deit(HubFolder folder) {
    Draft draft = new Draft(folder);
    EncoderFamilies.sizes(draft);
    return vit(draft, "DeiT", "deit", patches(draft, 224, 16, false, 2));
  }

  static Architecture dinov2(HubFolder folder) {
    HubConfig config = folder.config();
    Draft draft = new Draft(folder);
    EncoderFamilies.sizes(draft);
    draft.epsilon = config.positive("layer_norm_eps", 1e-6);
    draft.learnedScale = true;
    draft.gated = config.flag("use_swiglu_ffn", false);
    draft.hidden = draft.width * config.count("mlp_ratio", 4, Families.MAX_LAYERS);
    if (draft.gated) {
      draft.hidden = (draft.hidden * 2 / 3 + 7) / 8 * 8;
      draft.activation = Activations.SILU;
    }
    draft.pool = Pool.FIRST_AND_MEAN;
    return vit(
        draft, "Dinov2", draft.gated ? "dinov2-gated" : "dinov2", patches(draft, 224, 14, true, 1));
  }

  /// The tower of images: the class token's state, normalized, is what the image is.
  static Architecture clip(HubFolder folder) {
    HubConfig config = folder.config();
    Draft draft = new Draft(folder);
    EncoderFamilies.tower(draft, "quick_gelu", 1e-5);
    String projecting = "CLIPVisionModelWithProjection";
    String name =
        Architecture.chosen(config, "CLIPVisionModel", Set.of("CLIPVisionModel", projecting));
    Patches sizes = patches(draft, 224, 32, false, 1);
    Patches patches =
        new Patches(sizes.channels(), sizes.size(), false, sizes.patch(), 1, false, true);
    draft.patches = patches;
    int size = config.count("projection_dim", 512, Families.WIDEST);
    Output states = new Output(List.of("last_hidden_state"), Pool.UNNORMED, -1, null, null);
    Description description =
        draft.description(
            name.equals(projecting)
                ? List.of(draft.projected("image_embeds", -1, size), states)
                : List.of(states, draft.pooled()));
    return image(
        name,
        description,
        () -> new VitBlock(description, patches),
        draft.names("clip-image", description),
        Architecture.names(description),
        List.of(),
        patches.channels(),
        patches.size());
  }

  /// The tower of images of SigLIP, whose patches no class token comes before.
  static Architecture siglip(HubFolder folder) {
    Draft draft = new Draft(folder);
    EncoderFamilies.tower(draft, "gelu_pytorch_tanh", 1e-6);
    String name =
        Architecture.chosen(draft.config, "SiglipVisionModel", Set.of("SiglipVisionModel"));
    Patches patches = patches(draft, 224, 16, false, 0);
    draft.patches = patches;
    Description description =
        draft.description(
            draft.config.flag("vision_use_head", true)
                ? List.of(
                    draft.states(),
                    new Output(List.of("pooler_output"), Pool.PROBE, -1, null, null))
                : List.of(draft.states()));
    return image(
        name,
        description,
        () -> new VitBlock(description, patches),
        draft.names("siglip-image", description),
        Architecture.names(description),
        List.of(),
        patches.channels(),
        patches.size());
  }

  private static Patches patches(Draft draft, int size, int patch, boolean anySize, int first) {
    HubConfig config = draft.config;
    int image = config.count("image_size", size, MAX_PIXELS);
    int side = config.count("patch_size", patch, MAX_PIXELS);
    if (side > image) {
      throw config.refuse("patch_size", "it must be no more than image_size, " + image);
    }
    int channels = config.count("num_channels", 3, MAX_PIXELS);
    return new Patches(channels, image, anySize, side, first, true, false);
  }

  private static Architecture vit(Draft draft, String base, String section, Patches patches) {
    HubConfig config = draft.config;
    String classifier = base + "ForImageClassification";
    String name = Architecture.chosen(config, classifier, Set.of(classifier, base + "Model"));
    boolean classifies = name.equals(classifier);
    draft.attentionBias = config.flag("qkv_bias", true);
    draft.lastNorm = true;
    draft.patches = patches;
    List<String> labels = classifies ? Architecture.labels(config) : List.of();
    boolean dense = draft.pool == Pool.FIRST;
    if (!classifies && dense && draft.folder.hasPooler()) {
      int size = config.count("pooler_output_size", draft.width, Families.WIDEST);
      UnaryOperator<NDArray> act = config.choice("pooler_act", "tanh", Activations.KNOWN);
      draft.pooler = new Stem("pooler", size, true, act, false);
    }
    Description description =
        draft.description(
            classifies
                ? List.of(draft.labels(labels.size()))
                : draft.pooler == null && dense
                    ? List.of(draft.states())
                    : List.of(draft.states(), draft.pooled()));
    return image(
        name,
        description,
        () -> new VitBlock(description, patches),
        draft.names(section, description),
        Architecture.names(description),
        labels,
        patches.channels(),
        patches.size());
  }

  static Architecture convnext(HubFolder folder) {
    HubConfig config = folder.config();
    String classifier = "ConvNextForImageClassification";
    String name = Architecture.chosen(config, classifier, Set.of(classifier, "ConvNextModel"));
    boolean classifies = name.equals(classifier);
    List<Integer> filters = config.counts("hidden_sizes", MAX_STAGES, Families.WIDEST);
    List<Integer> depths = config.counts("depths", MAX_STAGES, Families.MAX_LAYERS);
    if (filters.size() != depths.size()) {
      throw config.refuse(
          "depths", "it must have as many numbers as hidden_sizes, " + filters.size());
    }
    if (config.count("num_stages", 4, MAX_STAGES) != filters.size()) {
      throw config.refuse("hidden_sizes", "it must have as many numbers as num_stages says");
    }
    config.count("image_size", 224, MAX_PIXELS);
    List<String> labels = classifies ? Architecture.labels(config) : List.of();
    ConvNextBlock.Config sizes =
        new ConvNextBlock.Config(
            config.count("num_channels", 3, MAX_PIXELS),
            config.count("patch_size", 4, MAX_PIXELS),
            filters,
            depths,
            config.choice("hidden_act", "gelu", Activations.KNOWN),
            config.positive("layer_norm_eps", 1e-12),
            config.positiveOrZero("layer_scale_init_value", 1e-6) > 0,
            labels.size());
    return image(
        name,
        sizes,
        () -> new ConvNextBlock(sizes),
        HubNames.of("convnext", Map.of(), HubNames.Head.NONE),
        classifies ? List.of("logits") : List.of("last_hidden_state", "pooler_output"),
        labels,
        sizes.channels(),
        224);
  }

  static Architecture resnet(HubFolder folder) {
    HubConfig config = folder.config();
    String classifier = "ResNetForImageClassification";
    String name = Architecture.chosen(config, classifier, Set.of(classifier, "ResNetModel"));
    boolean classifies = name.equals(classifier);
    List<Integer> filters = config.counts("hidden_sizes", MAX_STAGES, Families.WIDEST);
    List<Integer> depths = config.counts("depths", MAX_STAGES, Families.MAX_LAYERS);
    if (filters.size() != depths.size()) {
      throw config.refuse(
          "depths", "it must have as many numbers as hidden_sizes, " + filters.size());
    }
    boolean bottleneck =
        config.choice("layer_type", "bottleneck", Map.of("basic", false, "bottleneck", true));
    if (bottleneck && filters.stream().anyMatch(size -> size % 4 != 0)) {
      throw config.refuse("hidden_sizes", "a bottleneck's sizes must be multiples of 4");
    }
    List<String> labels = classifies ? Architecture.labels(config) : List.of();
    ResnetBlock.Config sizes =
        new ResnetBlock.Config(
            config.count("num_channels", 3, MAX_PIXELS),
            config.count("embedding_size", 64, Families.WIDEST),
            filters,
            depths,
            bottleneck,
            config.flag("downsample_in_bottleneck", false),
            config.flag("downsample_in_first_stage", false),
            config.choice("hidden_act", "relu", Activations.KNOWN),
            labels.size());
    return image(
        name,
        sizes,
        () -> new ResnetBlock(sizes),
        HubNames.of("resnet", Map.of(), HubNames.Head.NONE),
        classifies ? List.of("logits") : List.of("last_hidden_state", "pooler_output"),
        labels,
        sizes.channels(),
        224);
  }
}
