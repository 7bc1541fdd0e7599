// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Keys of `config.json` that change no answer of a model here: they describe the file, its training,
/// its tokens, how text is generated, or what else the library that writes these files returns.
final class HarmlessKeys {
  private static final Set<String> ABOUT_THE_FILE =
      Set.of(
          "_commit_hash",
          "_from_model_config",
          "_name_or_path",
          "_num_labels",
          "architectures",
          "dtype",
          "finetuning_task",
          "id2label",
          "label2id",
          "language",
          "license",
          "model_name",
          "name_or_path",
          "num_labels",
          "problem_type",
          "sbert_ce_default_activation_function",
          "sentence_transformers",
          "task_specific_params",
          "tokenizer_class",
          "torch_dtype",
          "transformers.js_config",
          "transformers_version",
          "unsloth_fixed",
          "unsloth_version");

  private static final Set<String> TRAINING =
      Set.of(
          "attention_dropout",
          "attention_probs_dropout_prob",
          "attn_pdrop",
          "classifier_dropout",
          "embd_pdrop",
          "gradient_checkpointing",
          "hidden_dropout_prob",
          "initializer_factor",
          "initializer_range",
          "neftune_noise_alpha",
          "pretraining_tp",
          "reorder_and_upcast_attn",
          "resid_pdrop",
          "use_bfloat16");

  /// Some say what a block here does anyway: a decoder is one.
  private static final Set<String> RUNNING =
      Set.of(
          "_attn_implementation",
          "_attn_implementation_autoset",
          "_attn_implementation_internal",
          "_flash_attn_2_enabled",
          "attn_implementation",
          "chunk_size_feed_forward",
          "is_decoder",
          "is_llama_config",
          "model_max_length",
          "max_sequence_length",
          "output_attentions",
          "output_hidden_states",
          "output_past",
          "return_dict",
          "tf_legacy_loss",
          "tie_encoder_decoder",
          "tie_word_embeddings",
          "tokenizer_model_max_length",
          "tokenizer_padding_side",
          "torchscript",
          "use_cache",
          "use_return_dict");

  private static final Set<String> TOKENS =
      Set.of(
          "bos_token_id",
          "cls_token_id",
          "decoder_start_token_id",
          "eos_token_id",
          "mask_token_id",
          "pad_token_id",
          "prefix",
          "sep_token_id",
          "unk_token_id");

  private static final Set<String> GENERATION =
      Set.of(
          "bad_words_ids",
          "begin_suppress_tokens",
          "diversity_penalty",
          "do_sample",
          "early_stopping",
          "encoder_no_repeat_ngram_size",
          "exponential_decay_length_penalty",
          "forced_bos_token_id",
          "forced_eos_token_id",
          "length_penalty",
          "max_length",
          "max_new_tokens",
          "min_length",
          "no_repeat_ngram_size",
          "num_beam_groups",
          "num_beams",
          "num_return_sequences",
          "output_scores",
          "remove_invalid_values",
          "repetition_penalty",
          "return_dict_in_generate",
          "suppress_tokens",
          "temperature",
          "top_k",
          "top_p",
          "typical_p");

  /// For heads and parts that the architectures here do not have, or that a file's model leaves out.
  private static final Set<String> OTHER_PARTS =
      Set.of(
          "cross_attention_hidden_size",
          "directionality",
          "encoder_stride",
          "n_ctx",
          "out_features",
          "out_indices",
          "pooler_act",
          "pooler_fc_size",
          "pooler_num_attention_heads",
          "pooler_num_fc_layers",
          "pooler_output_size",
          "pooler_size_per_head",
          "pooler_type",
          "stage_names",
          "summary_activation",
          "summary_first_dropout",
          "summary_proj_to_labels",
          "summary_type",
          "summary_use_proj");

  /// The block's size is read with the scales; the rest is about activations, which are not quantised
  /// here, or names the tensors that are as they were, which the files show.
  private static final Set<String> QUANTISATION =
      Set.of(
          "quantization_config.activation_scale_ub",
          "quantization_config.activation_scheme",
          "quantization_config.config_groups",
          "quantization_config.dequantize",
          "quantization_config.fmt",
          "quantization_config.global_compression_ratio",
          "quantization_config.ignore",
          "quantization_config.ignored_layers",
          "quantization_config.kv_cache_scheme",
          "quantization_config.modules_to_not_convert",
          "quantization_config.quantization_status",
          "quantization_config.scale_fmt",
          "quantization_config.version",
          "quantization_config.weight_block_size");

  static final Set<String> ALL =
      Stream.of(ABOUT_THE_FILE, TRAINING, RUNNING, TOKENS, GENERATION, OTHER_PARTS, QUANTISATION)
          .flatMap(Set::stream)
          .collect(Collectors.toUnmodifiableSet());

  private HarmlessKeys() {}
}
