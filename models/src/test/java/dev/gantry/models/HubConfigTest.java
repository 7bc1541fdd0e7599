// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Failure;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// A `config.json` that makes no sense is refused with one line that says why.
class HubConfigTest {
  @TempDir private Path folder;

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          llama | "model_type": "llama" | "model_type": "mamba" | 'model_type' is "mamba"; it must be one of bert, camembert,
          llama | "model_type": "llama" | "model_kind": "llama" | has no 'model_type'
          llama | "LlamaForCausalLM" | "LlamaForMultipleChoice" | 'LlamaForMultipleChoice' is not known; the known ones are LlamaForCausalLM, LlamaForQuestionAnswering
          llama | "LlamaForCausalLM" | 7 | 'architectures' is an array; it must be an array of strings
          llama | "vocab_size": 261 | "vocab": 261 | has no 'vocab_size'
          llama | "vocab_size": 261 | "vocab_size": 0 | 'vocab_size' is 0; it must be a whole number from 1 to 16777216
          llama | "vocab_size": 261 | "vocab_size": 99999999999999999999 | it must be a whole number from 1 to
          llama | "vocab_size": 261 | "vocab_size": 261.5 | 'vocab_size' is 261.5; it must be a whole number
          llama | "hidden_size": 64 | "hidden_size": "64" | 'hidden_size' is "64"; it must be a whole number
          llama | "hidden_size": 64 | "hidden_size": 64000000 | it must be a whole number from 1 to 1048576
          llama | "num_hidden_layers": 3 | "num_hidden_layers": 100000 | it must be a whole number from 1 to 1024
          llama | "num_key_value_heads": 2 | "num_key_value_heads": 3 | num_attention_heads must be a multiple of num_key_value_heads (are 4 and 3)
          llama | "head_dim": 16 | "head_dim": 15 | a head's size must be even
          llama | "hidden_act": "silu" | "hidden_act": "hardswish" | 'hidden_act' is "hardswish"; it must be one of gelu
          llama | "rope_type": "default" | "rope_type": "proportional" | 'rope_parameters.rope_type' is "proportional"; it must be one of default, dynamic, linear, llama3
          llama | "rope_type": "default" | "rope_type": "llama3" | has no 'rope_parameters.low_freq_factor'
          llama | "rope_theta": 10000.0 | "rope_theta": -1 | 'rope_parameters.rope_theta' is -1; it must be a number above 0
          llama | "rms_norm_eps": 1e-05 | "rms_norm_eps": 1e39 | 'rms_norm_eps' is 1.0E39; it must be a number above 0
          llama | "rms_norm_eps": 1e-05 | "rms_norm_eps": true | 'rms_norm_eps' is true; it must be a number above 0
          llama | "tie_word_embeddings": false | "tie_word_embeddings": "no" | 'tie_word_embeddings' is "no"; it must be true or false
          llama | "eos_token_id": 2 | "eos_token_id": [2, -1] | 'eos_token_id' is -1; it must be a whole number from 0 to
          llama | "vocab_size": 261 | "vocab_size": 261, "rope_scaling": {"type": "linear", "factor": 2} | 'rope_scaling' is an object; 'rope_parameters' beside it says otherwise
          llama | "vocab_size": 261 | "vocab_size": 261, "embedding_multiplier": 2.5 | 'embedding_multiplier' is 2.5; this key is not known here and may change the answers
          llama | "rope_type": "default" | "rope_type": "default", "partial_rotary_factor": 0.5 | 'rope_parameters.partial_rotary_factor' is 0.5; this key is not known
          llama | "vocab_size": 261 | "vocab_size": 261, "auto_map": {"AutoModel": "own.Model"} | 'auto_map' is an object; this key is not known
          llama | "vocab_size": 261 | "vocab_size": 261, "is_encoder_decoder": true | 'is_encoder_decoder' is true; it is not supported
          bert | "pad_token_id": 0 | "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2 | 'model_type' is "bert"; the special tokens are those of roberta
          gemma3 | "rope_type": "linear" | "rope_type": "linear", "truncate": false | 'rope_parameters.full_attention.truncate' is false; it is not supported; it must be true
          vit | "0": "LABEL_0" | "0": [1] | 'id2label.0' is an array; it must be a string or a number
          roberta | "pad_token_id": 1 | "pad_token_id": 23 | 'pad_token_id' is 23; it must be a whole number from 0 to 22
          gpt2 | "n_head": 4 | "n_head": 5 | n_embd must be a multiple of n_head (are 48 and 5)
          gpt2 | "add_cross_attention": false | "add_cross_attention": true | it is not supported; it must be false
          bert | "num_attention_heads": 4 | "num_attention_heads": 7 | hidden_size must be a multiple of num_attention_heads (are 64 and 7)
          bert | "is_decoder": false | "is_decoder": true | 'is_decoder' is true; it is not supported
          bert | "is_decoder": false | "position_embedding_type": "relative_key" | it must be absolute
          vit | "patch_size": 8 | "patch_size": 33 | 'patch_size' is 33; it must be no more than image_size, 32
          resnet | "layer_type": "basic" | "layer_type": "plain" | 'layer_type' is "plain"; it must be one of basic, bottleneck
          resnet | "depths": [ | "depths": [3, | 'depths' is an array; it must have as many numbers as hidden_sizes, 2
          resnet | "hidden_sizes": [ | "hidden_sizes": [], "sizes": [ | 'hidden_sizes' is an array; it must be an array of 1 to
          resnet-neck2 | 48 | 50 | 'hidden_sizes' is an array; a bottleneck's sizes must be multiples of 4
          convnext | "depths": [ | "depths": [3, | 'depths' is an array; it must have as many numbers as hidden_sizes, 3
          convnext | "num_stages": 3 | "num_stages": 2 | 'hidden_sizes' is an array; it must have as many numbers as num_stages says
          deberta-v2 | "position_buckets": 4 | "position_buckets": 1 | 'position_buckets' is 1; it must be 2 or more
          llama-rope3 | "high_freq_factor": 4.0 | "high_freq_factor": 1.0 | it must be more than low_freq_factor, 1.0
          gpt-neox | "partial_rotary_factor": 0.5 | "partial_rotary_factor": 0.01 | a head's size must be even for the rotary embedding (is 0)
          gpt-neox | "partial_rotary_factor": 0.5 | "partial_rotary_factor": 1.5 | it must be no more than 1
          smollm3-window | "sliding_attention" | "narrow_attention" | it must be full_attention or sliding_attention for each layer
          smollm3-window | "sliding_window": 3 | "sliding_window": null | 'layer_types' is an array; a layer has a window, and none is given
          smollm3 | "no_rope_layers": [ | "no_rope_layers": [1, | 'no_rope_layers' is an array; it must be 0 or 1 for each layer
          resnet | "model_type": "resnet" | "model_type": "resnet", "depths": [1] | 'depths' occurs twice
          """)
  void aWrongValueIsNamed(String model, String right, String wrong, String message)
      throws IOException {
    String config = Files.readString(HubModelTest.HUB.resolve(model).resolve("config.json"));
    assertThat(config).contains(right);
    Files.writeString(folder.resolve("config.json"), config.replace(right, wrong));
    assertThatThrownBy(() -> HubModel.of(folder))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining(folder.resolve("config.json").toString())
        .hasMessageContaining(message)
        .extracting(Throwable::getMessage)
        .asString()
        .doesNotContain("\n");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "{", "[]", "7", "{\"model_type\": ", "{} {}", "not json"})
  void whatIsNoObjectIsRefused(String text) throws IOException {
    Files.writeString(folder.resolve("config.json"), text);
    assertThatThrownBy(() -> HubModel.of(folder)).isInstanceOf(MalformedFileException.class);
  }

  @Test
  void aFolderWithoutAConfigurationIsNotFound() {
    assertThatThrownBy(() -> HubModel.of(folder.resolve("none")))
        .isInstanceOfSatisfying(
            TransferException.class,
            missing -> assertThat(missing.failure()).isInstanceOf(Failure.Errno.class));
  }

  @Test
  void namesOfAnotherNumberOfLabelsAreDropped() throws IOException {
    Path config = folder.resolve("config.json");
    Files.writeString(
        config, "{\"id2label\": {\"0\": \"cat\", \"1\": \"dog\"}, \"num_labels\": 2}");
    assertThat(Architecture.labels(HubConfig.read(config))).containsExactly("cat", "dog");
    Files.writeString(
        config, "{\"id2label\": {\"0\": \"cat\", \"1\": \"dog\"}, \"num_labels\": 3}");
    assertThat(Architecture.labels(HubConfig.read(config)))
        .containsExactly("LABEL_0", "LABEL_1", "LABEL_2");
  }

  /// Values that are absent, and keys of older versions.
  @Test
  void anOldConfigurationIsRead() throws IOException {
    Files.writeString(
        folder.resolve("config.json"),
        """
        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32,
         "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
         "num_key_value_heads": null, "rope_theta": 500000.0, "rope_scaling": {"type": "llama3",
         "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 8192}, "pretraining_tp": 1, "torch_dtype": "bfloat16"}
        """);
    HubModel hub = HubModel.of(folder);
    assertThat(hub.architecture()).isEqualTo("LlamaForCausalLM");
    assertThat(hub.newBlock().getParameters().keys())
        .contains("layer0_key_weight", "head_weight")
        .doesNotContain("layer0_key_bias");
  }

  /// The configurations that the hub has, and how many weights their models have.
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          BertForMaskedLM | 109514298 | {"architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1, "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0, "position_embedding_type": "absolute", "transformers_version": "4.6.0.dev0", "type_vocab_size": 2, "use_cache": true, "vocab_size": 30522}
          GPT2LMHeadModel | 124439808 | {"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null, "summary_type": "cls_index", "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257}
          LlamaForCausalLM | 6738415616 | {"architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "tie_word_embeddings": false, "torch_dtype": "float16", "vocab_size": 32000}
          LlamaForCausalLM | 8030261248 | {"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 128256}
          ViTForImageClassification | 85800194 | {"architectures": ["ViTForImageClassification"], "attention_probs_dropout_prob": 0.0, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 768, "image_size": 224, "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-12, "model_type": "vit", "num_attention_heads": 12, "num_channels": 3, "num_hidden_layers": 12, "patch_size": 16, "qkv_bias": true}
          """)
  void configurationsOfTheHubAreRead(String architecture, long weights, String text)
      throws IOException {
    Files.writeString(folder.resolve("config.json"), text);
    HubModel hub = HubModel.of(folder);
    assertThat(hub.architecture()).isEqualTo(architecture);
    assertThat(
            hub.newBlock().getParameters().values().stream()
                .mapToLong(parameter -> parameter.getShape().size())
                .sum())
        .isEqualTo(weights);
  }

  /// Members that say nothing about the arithmetic, as folders of the hub have them.
  @ParameterizedTest
  @ValueSource(
      strings = {
        """
        {"_name_or_path": "x", "architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1,
         "classifier_dropout": null, "directionality": "bidi", "gradient_checkpointing": false,
         "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
         "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
         "model_type": "bert", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0,
         "pooler_fc_size": 768, "pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3,
         "pooler_size_per_head": 128, "pooler_type": "first_token_transform",
         "position_embedding_type": "absolute", "torch_dtype": "float32",
         "transformers_version": "4.38.0", "type_vocab_size": 2, "use_cache": true, "vocab_size": 119547}
        """,
        """
        {"architectures": ["BertForSequenceClassification"], "hidden_size": 384, "id2label": {"0": "LABEL_0"},
         "intermediate_size": 1536, "label2id": {"LABEL_0": 0}, "model_type": "bert",
         "num_attention_heads": 12, "num_hidden_layers": 6, "problem_type": null,
         "sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity",
         "sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity", "version": "4.1.0"},
         "return_dict": true, "output_attentions": false, "tokenizer_class": "BertTokenizer",
         "vocab_size": 30522, "task_specific_params": {"x": {"y": 1}}, "pruned_heads": {}}
        """,
        """
        {"architectures": ["BertModel"], "bos_token_id": 0, "eos_token_id": 2, "hidden_size": 768,
         "max_position_embeddings": 514, "model_type": "bert", "pad_token_id": 1,
         "tokenizer_class": "HerbertTokenizerFast", "type_vocab_size": 2, "vocab_size": 50000}
        """,
        """
        {"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
         "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 576,
         "initializer_range": 0.0416, "intermediate_size": 1536, "is_llama_config": true,
         "max_position_embeddings": 8192, "mlp_bias": false, "model_type": "llama",
         "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3, "pad_token_id": 2,
         "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null,
         "rope_theta": 100000, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
         "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
         "transformers_version": "4.42.3", "use_cache": true, "vocab_size": 49152,
         "unsloth_fixed": true, "_attn_implementation_autoset": true, "temperature": 0.6}
        """,
        """
        {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
         "model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 1, "vocab_size": 32,
         "quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized",
          "config_groups": {"group_0": {"targets": ["Linear"]}}, "ignore": ["lm_head"],
          "global_compression_ratio": 1.5, "kv_cache_scheme": null, "quantization_status": "frozen"}}
        """,
        """
        {"architectures": ["ResNetForImageClassification"], "depths": [3, 4, 6, 3],
         "downsample_in_first_stage": false, "embedding_size": 64, "hidden_act": "relu",
         "hidden_sizes": [256, 512, 1024, 2048], "id2label": {"0": "tench", "1": "goldfish"},
         "label2id": {"goldfish": 1, "tench": 0}, "layer_type": "bottleneck", "model_type": "resnet",
         "num_channels": 3, "out_features": ["stage4"], "out_indices": [4], "problem_type": "x",
         "stage_names": ["stem", "stage1", "stage2", "stage3", "stage4"], "torch_dtype": "float32",
         "transformers_version": "4.18.0.dev0"}
        """
      })
  void whatSaysNothingAboutTheArithmeticIsPassedOver(String text) throws IOException {
    Files.writeString(folder.resolve("config.json"), text);
    assertThat(HubModel.of(folder).architecture()).isNotEmpty();
  }
}
