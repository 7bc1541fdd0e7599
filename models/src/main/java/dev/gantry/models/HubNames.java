// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static dev.gantry.formats.TensorTransform.part;
import static dev.gantry.formats.TensorTransform.transpose;

import dev.gantry.core.MisuseException;
import dev.gantry.djl.ParameterNames;
import java.util.Locale;

/// Names the tensors of the hub's files that fill the parameters of blocks that are known.
public final class HubNames {
  private HubNames() {}

  /// For [LlamaBlock]: files of `LlamaForCausalLM` and `LlamaModel`.
  public static ParameterNames llama(LlamaBlock.Head head) {
    String tensor = "layers.{i}.";
    return scores(head, "head_weight", "lm_head.weight")
        .optPrefix("model.")
        .rule("tokens_weight", "embed_tokens.weight")
        .rule("layer{i}_norm1_gamma", tensor + "input_layernorm.weight")
        .rule("layer{i}_query_{kind}", tensor + "self_attn.q_proj.{kind}")
        .rule("layer{i}_key_{kind}", tensor + "self_attn.k_proj.{kind}")
        .rule("layer{i}_value_{kind}", tensor + "self_attn.v_proj.{kind}")
        .rule("layer{i}_output_{kind}", tensor + "self_attn.o_proj.{kind}")
        .rule("layer{i}_norm2_gamma", tensor + "post_attention_layernorm.weight")
        .rule("layer{i}_gate_{kind}", tensor + "mlp.gate_proj.{kind}")
        .rule("layer{i}_up_{kind}", tensor + "mlp.up_proj.{kind}")
        .rule("layer{i}_down_{kind}", tensor + "mlp.down_proj.{kind}")
        .rule("norm_gamma", "norm.weight")
        .ignore("{any*}.rotary_emb.inv_freq")
        // Scales of quantised activations and caches, which are not quantised here, are left out.
        .ignore("{any*}.input_scale")
        .ignore("{any*}.self_attn.{kind}_scale")
        .build();
  }

  /// The weights that give the scores, which only the block knows: a file may have weights for them that differ from
  /// the embedding's.
  private static ParameterNames.Builder scores(
      LlamaBlock.Head head, String parameter, String tensor) {
    ParameterNames.Builder names = ParameterNames.builder();
    return switch (MisuseException.requireGiven("head", head)) {
      case NONE -> names.ignore(tensor);
      case OWN -> names.rule(parameter, tensor);
      case TIED ->
          names.refuse(
              tensor,
              "the block's scores are by the embedding's weights, and the file's by this tensor;"
                  + " load the file into a new block");
    };
  }

  /// For [Gpt2Block]: files of `GPT2LMHeadModel` and `GPT2Model`.
  public static ParameterNames gpt2(LlamaBlock.Head head) {
    String tensor = "h.{i}.";
    return scores(head, "head_weight", "lm_head.weight")
        .optPrefix("transformer.")
        .rule("tokens_weight", "wte.weight")
        .rule("positions_weight", "wpe.weight")
        .rule("layer{i}_norm1_gamma", tensor + "ln_1.weight")
        .rule("layer{i}_norm1_beta", tensor + "ln_1.bias")
        .rule("layer{i}_query_weight", tensor + "attn.c_attn.weight", transpose(), part(0, 0, 3))
        .rule("layer{i}_query_bias", tensor + "attn.c_attn.bias", part(0, 0, 3))
        .rule("layer{i}_key_weight", tensor + "attn.c_attn.weight", transpose(), part(0, 1, 3))
        .rule("layer{i}_key_bias", tensor + "attn.c_attn.bias", part(0, 1, 3))
        .rule("layer{i}_value_weight", tensor + "attn.c_attn.weight", transpose(), part(0, 2, 3))
        .rule("layer{i}_value_bias", tensor + "attn.c_attn.bias", part(0, 2, 3))
        .rule("layer{i}_output_weight", tensor + "attn.c_proj.weight", transpose())
        .rule("layer{i}_output_bias", tensor + "attn.c_proj.bias")
        .rule("layer{i}_norm2_gamma", tensor + "ln_2.weight")
        .rule("layer{i}_norm2_beta", tensor + "ln_2.bias")
        .rule("layer{i}_up_weight", tensor + "mlp.c_fc.weight", transpose())
        .rule("layer{i}_up_bias", tensor + "mlp.c_fc.bias")
        .rule("layer{i}_down_weight", tensor + "mlp.c_proj.weight", transpose())
        .rule("layer{i}_down_bias", tensor + "mlp.c_proj.bias")
        .rule("norm_gamma", "ln_f.weight")
        .rule("norm_beta", "ln_f.bias")
        // Masks, in old files.
        .ignore("{any*}.attn.bias")
        .ignore("{any*}.attn.masked_bias")
        .build();
  }

  /// For [BertModelBlock]: files of `BertModel` and of those with a head that [HubModel] knows.
  public static ParameterNames bert(BertModelBlock.Head head) {
    String tensor = "encoder.layer.{i}.";
    LlamaBlock.Head scores =
        switch (MisuseException.requireGiven("head", head)) {
          case MASKED_TOKENS -> LlamaBlock.Head.OWN;
          case MASKED_TOKENS_TIED -> LlamaBlock.Head.TIED;
          case NONE, POOLER, SEQUENCE, TOKENS -> LlamaBlock.Head.NONE;
        };
    return bertFiles(scores(scores, "scores_weight", "cls.predictions.decoder.weight"))
        .rule("tokens_weight", "embeddings.word_embeddings.weight")
        .rule("positions_weight", "embeddings.position_embeddings.weight")
        .rule("types_weight", "embeddings.token_type_embeddings.weight")
        .rule("norm_gamma", "embeddings.LayerNorm.weight")
        .rule("norm_beta", "embeddings.LayerNorm.bias")
        .rule("layer{i}_query_{kind}", tensor + "attention.self.query.{kind}")
        .rule("layer{i}_key_{kind}", tensor + "attention.self.key.{kind}")
        .rule("layer{i}_value_{kind}", tensor + "attention.self.value.{kind}")
        .rule("layer{i}_output_{kind}", tensor + "attention.output.dense.{kind}")
        .rule("layer{i}_norm1_gamma", tensor + "attention.output.LayerNorm.weight")
        .rule("layer{i}_norm1_beta", tensor + "attention.output.LayerNorm.bias")
        .rule("layer{i}_up_{kind}", tensor + "intermediate.dense.{kind}")
        .rule("layer{i}_down_{kind}", tensor + "output.dense.{kind}")
        .rule("layer{i}_norm2_gamma", tensor + "output.LayerNorm.weight")
        .rule("layer{i}_norm2_beta", tensor + "output.LayerNorm.bias")
        .optRule("pooler_{kind}", "pooler.dense.{kind}")
        .optRule("labels_{kind}", "classifier.{kind}")
        .optRule("transform_{kind}", "cls.predictions.transform.dense.{kind}")
        .optRule("transformNorm_gamma", "cls.predictions.transform.LayerNorm.weight")
        .optRule("transformNorm_beta", "cls.predictions.transform.LayerNorm.bias")
        .optRule("scores_bias", "cls.predictions.decoder.bias")
        .alias("cls.predictions.bias", "cls.predictions.decoder.bias")
        .build();
  }

  /// Names of BERT's tensors, also in old files, and tensors for other heads than the block's.
  private static ParameterNames.Builder bertFiles(ParameterNames.Builder names) {
    return names
        .optPrefix("bert.")
        .alias("{any*}.LayerNorm.gamma", "{any}.LayerNorm.weight")
        .alias("{any*}.LayerNorm.beta", "{any}.LayerNorm.bias")
        .alias("bert.{any*}.LayerNorm.gamma", "{any}.LayerNorm.weight")
        .alias("bert.{any*}.LayerNorm.beta", "{any}.LayerNorm.bias")
        .ignore("embeddings.position_ids")
        .ignore("bert.embeddings.position_ids")
        .ignore("{any*}pooler.dense.{kind}")
        .ignore("pooler.dense.{kind}")
        .ignore("cls.{any*}");
  }

  /// For [VitBlock]: files of `ViTForImageClassification` and `ViTModel`.
  public static ParameterNames vit() {
    String tensor = "encoder.layer.{i}.";
    return ParameterNames.builder()
        .optPrefix("vit.")
        .rule("classToken", "embeddings.cls_token")
        .rule("positions", "embeddings.position_embeddings")
        .rule("patches_{kind}", "embeddings.patch_embeddings.projection.{kind}")
        .rule("layer{i}_norm1_gamma", tensor + "layernorm_before.weight")
        .rule("layer{i}_norm1_beta", tensor + "layernorm_before.bias")
        .rule("layer{i}_query_{kind}", tensor + "attention.attention.query.{kind}")
        .rule("layer{i}_key_{kind}", tensor + "attention.attention.key.{kind}")
        .rule("layer{i}_value_{kind}", tensor + "attention.attention.value.{kind}")
        .rule("layer{i}_output_{kind}", tensor + "attention.output.dense.{kind}")
        .rule("layer{i}_norm2_gamma", tensor + "layernorm_after.weight")
        .rule("layer{i}_norm2_beta", tensor + "layernorm_after.bias")
        .rule("layer{i}_up_{kind}", tensor + "intermediate.dense.{kind}")
        .rule("layer{i}_down_{kind}", tensor + "output.dense.{kind}")
        .rule("norm_gamma", "layernorm.weight")
        .rule("norm_beta", "layernorm.bias")
        .optRule("labels_{kind}", "classifier.{kind}")
        .optRule("pooler_{kind}", "pooler.dense.{kind}")
        .ignore("pooler.dense.{kind}")
        .ignore("vit.pooler.dense.{kind}")
        .ignore("embeddings.mask_token")
        .ignore("vit.embeddings.mask_token")
        .build();
  }

  /// For [ResnetBlock]: files of `ResNetForImageClassification` and `ResNetModel`.
  public static ParameterNames resnet() {
    ParameterNames.Builder names =
        ParameterNames.builder()
            .optPrefix("resnet.")
            .optRule("labels_{kind}", "classifier.1.{kind}")
            .ignore("{any*}.num_batches_tracked");
    convolution(names, "stem", "embedder.embedder");
    convolution(names, "stage{i}_layer{j}_part{k}", "encoder.stages.{i}.layers.{j}.layer.{k}");
    convolution(names, "stage{i}_layer{j}_shortcut", "encoder.stages.{i}.layers.{j}.shortcut");
    return names.build();
  }

  private static void convolution(ParameterNames.Builder names, String block, String tensor) {
    String norm = tensor + ".normalization.";
    names
        .optRule(block + "_conv_weight", tensor + ".convolution.weight")
        .optRule(block + "_norm_gamma", norm + "weight")
        .optRule(block + "_norm_beta", norm + "bias")
        .optRule(block + "_norm_runningMean", norm + "running_mean")
        .optRule(block + "_norm_runningVar", norm + "running_var");
  }

  /// For DJL's own `ai.djl.nn.transformer.BertBlock`, from files of BERT.
  ///
  /// The shapes are those of BERT, the arithmetic is not: DJL's block normalizes over the batch where
  /// BERT normalizes each state, adds the layer's input twice, and takes only texts of the greatest
  /// length. So it does not answer as BERT does; it can be trained on from these weights. The
  /// statistics of its batch normalization, which BERT does not have, become mean 0 and variance 1.
  /// [BertModelBlock] answers as BERT does.
  public static ParameterNames djlBert() {
    ParameterNames.Builder names =
        bertFiles(ParameterNames.builder())
            .rule("{j}tokenEmbedding_embedding", "embeddings.word_embeddings.weight")
            .rule("positionEmbedding", "embeddings.position_embeddings.weight")
            .rule("{j}typeEmbedding_embedding", "embeddings.token_type_embeddings.weight")
            .rule("{j}embeddingNorm_gamma", "embeddings.LayerNorm.weight")
            .rule("{j}embeddingNorm_beta", "embeddings.LayerNorm.bias")
            .rule("{j}poolingProjection_{kind}", "pooler.dense.{kind}");
    return djlEncoder(names, "{j}transformer_{i}_", "encoder.layer.{i}.").build();
  }

  /// For DJL's own `ai.djl.nn.transformer.TransformerEncoderBlock`, from one layer of a file of BERT.
  /// What [#djlBert] says of the arithmetic holds here, too.
  ///
  /// @param layer what the names of the layer's tensors begin with, such as `encoder.layer.0.`
  public static ParameterNames djlEncoder(String layer) {
    MisuseException.requireGiven("layer", layer);
    return djlEncoder(bertFiles(ParameterNames.builder()), "", layer).ignore("{any*}").build();
  }

  private static ParameterNames.Builder djlEncoder(
      ParameterNames.Builder names, String block, String tensor) {
    String attention = block + "01selfAttention_";
    return names
        .rule(attention + "01keyProjection_{kind}", tensor + "attention.self.key.{kind}")
        .rule(attention + "02queryProjection_{kind}", tensor + "attention.self.query.{kind}")
        .rule(attention + "03valueProjection_{kind}", tensor + "attention.self.value.{kind}")
        .rule(attention + "04resultProjection_{kind}", tensor + "attention.output.dense.{kind}")
        .rule(block + "02attentionNorm_gamma", tensor + "attention.output.LayerNorm.weight")
        .rule(block + "02attentionNorm_beta", tensor + "attention.output.LayerNorm.bias")
        .rule(block + "03outputBlock_01Linear_{kind}", tensor + "intermediate.dense.{kind}")
        .rule(block + "03outputBlock_03Linear_{kind}", tensor + "output.dense.{kind}")
        .rule(block + "04outputNorm_gamma", tensor + "output.LayerNorm.weight")
        .rule(block + "04outputNorm_beta", tensor + "output.LayerNorm.bias")
        .constant("{any}_runningMean", 0)
        .constant("{any}_runningVar", 1);
  }

  /// For `ResNetV1` of DJL's model zoo, made for images of more than 32 pixels, from files of
  /// `ResNetForImageClassification`.
  ///
  /// DJL's block has its strides in the first convolution of a bottleneck: it answers as the file's
  /// model if `downsample_in_bottleneck` of `config.json` is true, to some 1e-4 (its epsilons differ).
  /// The usual files have them in the middle one: [ResnetBlock] does both. DJL's biases, which the
  /// files do not have, become 0.
  ///
  /// @param layers 50, 101 or 152; with 18 and 34 layers DJL's block has bottlenecks, and no file fits
  /// @throws MisuseException for another number
  public static ParameterNames djlResnet(int layers) {
    String tensor = "encoder.stages.%d.layers.%d.";
    return djlResnet(
        ParameterNames.builder().optPrefix("resnet."),
        layers,
        new ResnetTensors(
            "embedder.embedder.convolution.",
            "embedder.embedder.normalization.",
            tensor + "layer.%d.convolution.",
            tensor + "layer.%d.normalization.",
            tensor + "shortcut.convolution.",
            tensor + "shortcut.normalization.",
            "classifier.1.",
            0));
  }

  /// As [#djlResnet(int)], from files with the names of torchvision, such as `layer1.0.conv1.weight`.
  /// Those of torchvision itself have their strides in the middle convolution.
  ///
  /// @throws MisuseException as there
  public static ParameterNames djlResnetOfTorchvision(int layers) {
    String tensor = "layer%d.%d.";
    return djlResnet(
        ParameterNames.builder(),
        layers,
        new ResnetTensors(
            "conv1.",
            "bn1.",
            tensor + "conv%d.",
            tensor + "bn%d.",
            tensor + "downsample.0.",
            tensor + "downsample.1.",
            "fc.",
            1));
  }

  /// What tensors' names begin with; numbers are of the stage, the layer and the convolution.
  ///
  /// @param first the number of the first stage and the first convolution
  private record ResnetTensors(
      String stemConvolution,
      String stemNorm,
      String convolution,
      String norm,
      String shortcutConvolution,
      String shortcutNorm,
      String labels,
      int first) {}

  private static ParameterNames djlResnet(
      ParameterNames.Builder names, int layers, ResnetTensors tensors) {
    int[] depths =
        switch (layers) {
          case 50 -> new int[] {3, 4, 6, 3};
          case 101 -> new int[] {3, 4, 23, 3};
          case 152 -> new int[] {3, 8, 36, 3};
          default ->
              throw new MisuseException("layers must be 50, 101 or 152 (was " + layers + ")");
        };
    names.rule("01Conv2d_weight", tensors.stemConvolution() + "weight");
    djlNorm(names, "02BatchNorm_", tensors.stemNorm());
    int place = 5;
    for (int stage = 0; stage < depths.length; stage++) {
      for (int layer = 0; layer < depths[stage]; layer++) {
        String block = String.format(Locale.ROOT, "%02dParallelBlock_", place++);
        djlUnit(names, block, tensors, stage + tensors.first(), layer);
      }
    }
    // Behind the last unit are a pool and a flattening.
    return names
        .rule(
            String.format(Locale.ROOT, "%02dLinear_{kind}", place + 2), tensors.labels() + "{kind}")
        .constant("{any}Conv2d_bias", 0)
        .ignore("{any*}.num_batches_tracked")
        .build();
  }

  private static void djlUnit(
      ParameterNames.Builder names, String block, ResnetTensors tensors, int stage, int layer) {
    for (int i = 0; i < 3; i++) {
      String part = block + "01SequentialBlock_";
      int number = i + tensors.first();
      names.rule(
          String.format(Locale.ROOT, "%s%02dConv2d_weight", part, 3 * i + 1),
          String.format(Locale.ROOT, tensors.convolution(), stage, layer, number) + "weight");
      djlNorm(
          names,
          String.format(Locale.ROOT, "%s%02dBatchNorm_", part, 3 * i + 2),
          String.format(Locale.ROOT, tensors.norm(), stage, layer, number));
    }
    if (layer == 0) {
      String part = block + "02SequentialBlock_";
      names.rule(
          part + "01Conv2d_weight",
          String.format(Locale.ROOT, tensors.shortcutConvolution(), stage, layer) + "weight");
      djlNorm(
          names,
          part + "02BatchNorm_",
          String.format(Locale.ROOT, tensors.shortcutNorm(), stage, layer));
    }
  }

  private static void djlNorm(ParameterNames.Builder names, String block, String tensor) {
    names
        .rule(block + "gamma", tensor + "weight")
        .rule(block + "beta", tensor + "bias")
        .rule(block + "runningMean", tensor + "running_mean")
        .rule(block + "runningVar", tensor + "running_var");
  }
}
