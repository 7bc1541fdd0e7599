"""Writes tiny models of many families by the reference library (transformers), with its answers: make_hub.py FOLDER [NAME...]

A model is saved in BFLOAT16, read again in FLOAT32, and asked: the answers are what the library makes of the files. Values of padding are null,
because nobody reads them. expected-left.json has texts that are padded on the left. Greedy tokens are of a prompt that the library goes on with
by clear margins."""
import json, os, shutil, sys, zlib
import torch
import transformers as T
from safetensors.torch import load_file, save_file

T.utils.logging.disable_progress_bar()
T.utils.logging.set_verbosity_error()
torch.set_num_threads(1)
OUT = sys.argv[1]
WORDS, TOLERANCE, PROMPT = 48, 2e-4, 5
random = torch.Generator()


def spread(model, tied):
    """What initialisers leave at 0 or 1 says nothing about a loader. A tied table is small: else a model repeats its last token."""
    gemma = "gemma" in model.config.model_type
    for name, p in list(model.named_parameters()) + [(n, b) for n, b in model.named_buffers() if n in model.state_dict()]:
        noise = torch.randn(p.shape, generator=random)
        one = name.endswith("weight") and not (gemma and "norm" in name)
        if "sinks" in name: p.copy_(noise)
        elif "lambda1" in name or "layer_scale" in name: p.copy_(noise * 0.2 + 0.6)
        elif p.dim() < 2: p.copy_(noise * 0.1 + one)
        else: p.copy_(noise * (0.05 if tied and "embed" in name else 0.15))


def texts(lengths, padding, side="right", types=False, ends=None):
    """Texts of these lengths, padded to the longest. With `ends`, each has this token last."""
    longest = max(lengths)
    ids, mask = torch.randint(5, WORDS, (len(lengths), longest), generator=random), torch.zeros(len(lengths), longest).long()
    for row, length in enumerate(lengths):
        mask[row, slice(length) if side == "right" else slice(longest - length, None)] = 1
        if ends is not None: ids[row, length - 1] = ends
    ids[mask == 0] = padding
    given = {"input_ids": ids, "attention_mask": mask}
    if types: given["token_type_ids"] = (torch.arange(longest) % 3 == 1).long().repeat(len(lengths), 1)
    return given


def images(size):
    return {"pixel_values": torch.randint(-64, 64, (2, 3, size, size), generator=random).float() / 32}


def loaded(kind, folder):
    model, info = kind.from_pretrained(folder, dtype=torch.float32, output_loading_info=True, attn_implementation="eager")
    assert not any(info[x] for x in ("unexpected_keys", "mismatched_keys")), info
    assert all("pooler" in key for key in info["missing_keys"]), info
    return model.eval()


def answers(model, given, names):
    result = model(**given)
    mask = given.get("attention_mask")
    for name in names or [n for n in ("last_hidden_state", "pooler_output") if getattr(result, n, None) is not None]:
        values = getattr(result, name).clone()
        assert not values.isnan().any()
        if mask is not None and values.shape[:2] == mask.shape: values[mask == 0] = float("nan")
        yield name, values


def numbers(values):
    return [None if x != x else round(x, 5) for x in values.double().flatten().tolist()]


def expect(folder, file, model, given, names, note, **more):
    inputs = {n: {"shape": list(v.shape), "dtype": str(v.dtype)[6:], "values": numbers(v) if v.is_floating_point() else v.flatten().tolist()} for n, v in given.items()}
    outputs = {n: {"shape": list(v.shape), "values": numbers(v)} for n, v in answers(model, given, names)}
    content = {"architecture": type(model).__name__, "note": note, **more, "inputs": inputs, "outputs": outputs, "tolerance": TOLERANCE}
    json.dump(content, open(f"{folder}/{file}", "w"))


def greedy(kind, folder):
    """A prompt and 200 tokens that follow, as many different ones as a few prompts give."""
    best = None
    for _ in range(20):
        prompt = torch.randint(5, WORDS, (1, PROMPT), generator=random)
        model = loaded(kind, folder)
        for config in (model.config, model.generation_config): config.eos_token_id = None
        made = model.generate(prompt, max_new_tokens=200, do_sample=False, pad_token_id=0, output_scores=True, return_dict_in_generate=True)
        margins = [(top[0] - top[1]).item() for top in (scores[0].topk(2).values for scores in made.scores)]
        tokens = made.sequences[0].tolist()
        if min(margins) > 1e-3 and (best is None or len(set(tokens)) > len(set(best))): best = tokens
    return best


def make(name, kind, config, names=("logits",), note="", given=None, lengths=(8, 5), types=False, left=False, generate=False, poolerless=False):
    random.manual_seed(zlib.crc32(name.encode())); torch.manual_seed(1)
    folder = f"{OUT}/{name}"
    shutil.rmtree(folder, ignore_errors=True); os.makedirs(folder)
    model = kind(config).eval()
    spread(model, generate and config.tie_word_embeddings)
    if poolerless: model.pooler = None
    model.to(torch.bfloat16).save_pretrained(folder)
    model = loaded(kind, folder)
    padding = getattr(config, "pad_token_id", None) or 0
    more = {"generated": greedy(kind, folder)} if generate else {}
    expect(folder, "expected.json", model, given() if given else texts(lengths, padding, types=types), names, note, **more)
    if left: expect(folder, "expected-left.json", model, texts(lengths, padding, "left", types), names, note)
    for extra in ("generation_config.json", "README.md"):
        if os.path.exists(f"{folder}/{extra}"): os.remove(f"{folder}/{extra}")
    return folder


ENCODER = dict(vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=16, max_position_embeddings=24)
ROBERTA = {**ENCODER, "pad_token_id": 1, "type_vocab_size": 1}
DISTIL = dict(vocab_size=WORDS, dim=32, n_layers=2, n_heads=4, hidden_dim=16, max_position_embeddings=24)
MODERN = dict(vocab_size=WORDS, hidden_size=32, num_attention_heads=4, intermediate_size=16, pad_token_id=0, eos_token_id=2, bos_token_id=1, cls_token_id=1, sep_token_id=2)
DEBERTA = {**ENCODER, "type_vocab_size": 0, "relative_attention": True, "position_buckets": 4, "norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False}
DECODER = dict(vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=16, max_position_embeddings=256, bos_token_id=1, eos_token_id=2)
SHORT = {**DECODER, "num_hidden_layers": 1}
NEOX = {key: value for key, value in DECODER.items() if key != "num_key_value_heads"}
GEMMA = {**DECODER, "head_dim": 8, "pad_token_id": 0}
VISION = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=16, image_size=8, patch_size=4)
DINO = {key: value for key, value in VISION.items() if key != "intermediate_size"}
TOWER = dict(vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=16, max_position_embeddings=16, bos_token_id=1, eos_token_id=2, pad_token_id=0)
STATES, SPANS = None, ("start_logits", "end_logits")
LONG = {"type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.5], "long_factor": [1.0, 1.5, 3.0, 5.0]}
YARN = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False, "original_max_position_embeddings": 4096}

MODELS = {
    "bert-pretraining": (T.BertForPreTraining, T.BertConfig(**ENCODER), dict(names=("prediction_logits", "seq_relationship_logits"), types=True)),
    "bert-spans": (T.BertForQuestionAnswering, T.BertConfig(**ENCODER, hidden_act="gelu_new"), dict(names=SPANS, types=True, left=True)),
    "roberta": (T.RobertaForMaskedLM, T.RobertaConfig(**ROBERTA, layer_norm_eps=1e-5), dict(left=True, note="positions count on from pad_token_id and leave padding out")),
    "roberta-labels": (T.RobertaForSequenceClassification, T.RobertaConfig(**{**ROBERTA, "num_hidden_layers": 1, "pad_token_id": 3, "type_vocab_size": 2}, hidden_act="relu", num_labels=3), dict(types=True)),
    "xlm-roberta": (T.XLMRobertaModel, T.XLMRobertaConfig(**ROBERTA, layer_norm_eps=1e-5), dict(names=("last_hidden_state",), poolerless=True, left=True)),
    "xlm-roberta-tokens": (T.XLMRobertaForTokenClassification, T.XLMRobertaConfig(**{**ROBERTA, "num_hidden_layers": 1}, num_labels=3), {}),
    "camembert": (T.CamembertForMaskedLM, T.CamembertConfig(**ROBERTA, tie_word_embeddings=False), dict(note="scores by weights of their own")),
    "camembert-spans": (T.CamembertForQuestionAnswering, T.CamembertConfig(**{**ROBERTA, "num_hidden_layers": 1}), dict(names=SPANS)),
    "distilbert": (T.DistilBertForMaskedLM, T.DistilBertConfig(**DISTIL), dict(left=True)),
    "distilbert-labels": (T.DistilBertForSequenceClassification, T.DistilBertConfig(**{**DISTIL, "n_layers": 1}, activation="relu", num_labels=3), {}),
    "electra": (T.ElectraForPreTraining, T.ElectraConfig(**ENCODER, embedding_size=32), dict(types=True, note="one score for each token")),
    "electra-generator": (T.ElectraForMaskedLM, T.ElectraConfig(**ENCODER, embedding_size=16), dict(types=True, left=True, note="narrow tables, and a dense layer behind them")),
    "electra-labels": (T.ElectraForSequenceClassification, T.ElectraConfig(**{**ENCODER, "num_hidden_layers": 1}, embedding_size=16, hidden_act="relu", num_labels=3), {}),
    "mpnet": (T.MPNetModel, T.MPNetConfig(**{**ENCODER, "pad_token_id": 1}), dict(names=STATES, lengths=(20, 9), note="a learned bias by distance")),
    "mpnet-labels": (T.MPNetForSequenceClassification, T.MPNetConfig(**{**ENCODER, "num_hidden_layers": 1, "pad_token_id": 1}, layer_norm_eps=1e-5, num_labels=1), dict(left=True)),
    "modernbert": (T.ModernBertModel, T.ModernBertConfig(**MODERN, num_hidden_layers=3, local_attention=4, global_attn_every_n_layers=2), dict(names=STATES, lengths=(12, 7), left=True, note="windows to both sides; two rotary embeddings")),
    "modernbert-mlm": (T.ModernBertForMaskedLM, T.ModernBertConfig(**MODERN, num_hidden_layers=2, local_attention=6, norm_bias=True, attention_bias=True, mlp_bias=True), {}),
    "modernbert-labels": (T.ModernBertForSequenceClassification, T.ModernBertConfig(**MODERN, num_hidden_layers=2, local_attention=6, classifier_pooling="mean", num_labels=3), dict(left=True)),
    "llama-labels": (T.LlamaForSequenceClassification, T.LlamaConfig(**SHORT, pad_token_id=0, num_labels=3), dict(left=True, note="the last token that is not padding")),
    "llama-yarn": (T.LlamaForCausalLM, T.LlamaConfig(**DECODER, attention_bias=True, mlp_bias=True, rope_scaling={**YARN, "factor": 8.0, "attention_factor": 1.3, "original_max_position_embeddings": 32}), dict(generate=True)),
    "llama-longrope": (T.LlamaForCausalLM, T.LlamaConfig(**DECODER, rope_scaling={**LONG, "original_max_position_embeddings": 64}), dict(generate=True, note="generated tokens beyond the original length")),
    "llama-dynamic": (T.LlamaForCausalLM, T.LlamaConfig(**{**SHORT, "max_position_embeddings": 6}, rope_scaling={"type": "dynamic", "factor": 2.0}), dict(note="a text longer than max_position_embeddings")),
    "mistral": (T.MistralForCausalLM, T.MistralConfig(**DECODER, sliding_window=4), dict(left=True, generate=True, note="a window shorter than the text")),
    "mistral-labels": (T.MistralForSequenceClassification, T.MistralConfig(**SHORT, head_dim=12, sliding_window=None, pad_token_id=2, num_labels=3), {}),
    "qwen2": (T.Qwen2ForCausalLM, T.Qwen2Config(**DECODER, tie_word_embeddings=True, use_sliding_window=True, sliding_window=3, max_window_layers=1), dict(left=True, generate=True)),
    "qwen2-states": (T.Qwen2Model, T.Qwen2Config(**SHORT, rope_scaling={"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}), dict(names=STATES)),
    "phi3": (T.Phi3ForCausalLM, T.Phi3Config(**{**DECODER, "max_position_embeddings": 64}, pad_token_id=0, rope_scaling=LONG, original_max_position_embeddings=6), dict(left=True, note="a text beyond the original length")),
    "phi3-window": (T.Phi3ForCausalLM, T.Phi3Config(**DECODER, pad_token_id=0, sliding_window=4, partial_rotary_factor=0.5, tie_word_embeddings=True), dict(generate=True)),
    "qwen3": (T.Qwen3ForCausalLM, T.Qwen3Config(**DECODER, head_dim=12, tie_word_embeddings=True), dict(left=True, generate=True)),
    "qwen3-states": (T.Qwen3Model, T.Qwen3Config(**SHORT, head_dim=8, attention_bias=True), dict(names=STATES)),
    "granite": (T.GraniteForCausalLM, T.GraniteConfig(**DECODER, embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.4, attention_multiplier=0.2, tie_word_embeddings=True), dict(left=True, generate=True)),
    "granite-bias": (T.GraniteForCausalLM, T.GraniteConfig(**SHORT, attention_bias=True, mlp_bias=True, rope_theta=500.0), {}),
    "smollm3": (T.SmolLM3ForCausalLM, T.SmolLM3Config(**DECODER, pad_token_id=0, no_rope_layers=[1, 0]), dict(generate=True)),
    "smollm3-window": (T.SmolLM3ForCausalLM, T.SmolLM3Config(**DECODER, pad_token_id=0, use_sliding_window=True, sliding_window=3, no_rope_layer_interval=2, attention_bias=True), dict(left=True)),
    "olmo2": (T.Olmo2ForCausalLM, T.Olmo2Config(**DECODER), dict(left=True, generate=True)),
    "olmo2-labels": (T.Olmo2ForSequenceClassification, T.Olmo2Config(**{**SHORT, "num_key_value_heads": 4}, attention_bias=True, rope_theta=5e5, pad_token_id=1, num_labels=3), {}),
    "stablelm": (T.StableLmForCausalLM, T.StableLmConfig(**DECODER, use_qkv_bias=True, partial_rotary_factor=0.5), dict(left=True, generate=True)),
    "stablelm-parallel": (T.StableLmForCausalLM, T.StableLmConfig(**SHORT, use_parallel_residual=True, qk_layernorm=True, tie_word_embeddings=True), {}),
    "gpt-neox": (T.GPTNeoXForCausalLM, T.GPTNeoXConfig(**NEOX, rotary_pct=0.5), dict(left=True, generate=True)),
    "gpt-neox-serial": (T.GPTNeoXForCausalLM, T.GPTNeoXConfig(**{**NEOX, "num_hidden_layers": 1}, use_parallel_residual=False, attention_bias=False, rotary_pct=1.0, tie_word_embeddings=True), {}),
    "gemma": (T.GemmaForCausalLM, T.GemmaConfig(**{**GEMMA, "num_key_value_heads": 1}, hidden_act="gelu"), dict(left=True, generate=True)),
    "gemma-labels": (T.GemmaForSequenceClassification, T.GemmaConfig(**{**GEMMA, "num_hidden_layers": 1}, num_labels=3), {}),
    "gemma2": (T.Gemma2ForCausalLM, T.Gemma2Config(**GEMMA, sliding_window=4, query_pre_attn_scalar=16, attn_logit_softcapping=2.0, final_logit_softcapping=1.5), dict(left=True, generate=True)),
    "gemma2-uncapped": (T.Gemma2ForCausalLM, T.Gemma2Config(**GEMMA, sliding_window=3, query_pre_attn_scalar=8, attn_logit_softcapping=None, final_logit_softcapping=None), {}),
    "gemma3": (T.Gemma3ForCausalLM, T.Gemma3TextConfig(**GEMMA, sliding_window=4, query_pre_attn_scalar=16, sliding_window_pattern=2, rope_scaling={"rope_type": "linear", "factor": 8.0}), dict(left=True, generate=True)),
    "gemma3-states": (T.Gemma3TextModel, T.Gemma3TextConfig(**GEMMA, sliding_window=6, query_pre_attn_scalar=8, use_bidirectional_attention=True), dict(names=STATES, note="tokens see one another")),
    "mixtral": (T.MixtralForCausalLM, T.MixtralConfig(**{**DECODER, "intermediate_size": 8}, num_local_experts=4, num_experts_per_tok=2), dict(left=True, generate=True)),
    "mixtral-window": (T.MixtralForCausalLM, T.MixtralConfig(**{**SHORT, "intermediate_size": 8}, num_local_experts=3, num_experts_per_tok=1, sliding_window=4, tie_word_embeddings=True), {}),
    "qwen3-moe": (T.Qwen3MoeForCausalLM, T.Qwen3MoeConfig(**DECODER, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8, norm_topk_prob=True), dict(generate=True)),
    "qwen3-moe-mixed": (T.Qwen3MoeForCausalLM, T.Qwen3MoeConfig(**DECODER, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8, mlp_only_layers=[1], tie_word_embeddings=True), {}),
    "gpt-oss": (T.GptOssForCausalLM, T.GptOssConfig(**{**DECODER, "intermediate_size": 8}, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=4, rope_parameters={**YARN, "factor": 4.0, "original_max_position_embeddings": 64}), dict(left=True, generate=True)),
    "gpt-oss-mxfp4": (T.GptOssForCausalLM, T.GptOssConfig(**{**SHORT, "intermediate_size": 32}, head_dim=8, num_local_experts=4, num_experts_per_tok=3, sliding_window=4, rope_parameters=YARN), dict(note="experts in MXFP4, as published")),
    "deit": (T.DeiTForImageClassification, T.DeiTConfig(**VISION, num_labels=3), dict(given=lambda: images(8))),
    "deit-states": (T.DeiTModel, T.DeiTConfig(**VISION, qkv_bias=False, pooler_output_size=12), dict(names=STATES, given=lambda: images(8))),
    "dinov2": (T.Dinov2Model, T.Dinov2Config(**DINO, mlp_ratio=1), dict(names=STATES, given=lambda: images(12), note="images larger than image_size: positions are interpolated")),
    "dinov2-labels": (T.Dinov2ForImageClassification, T.Dinov2Config(**DINO, mlp_ratio=2, use_swiglu_ffn=True, num_labels=3), dict(given=lambda: images(8))),
    "convnext": (T.ConvNextForImageClassification, T.ConvNextConfig(hidden_sizes=[8, 12, 16], depths=[1, 2, 1], num_stages=3, patch_size=2, num_labels=3), dict(given=lambda: images(16))),
    "convnext-states": (T.ConvNextModel, T.ConvNextConfig(hidden_sizes=[8, 12], depths=[1, 1], num_stages=2, patch_size=4, hidden_act="relu", layer_scale_init_value=0.0), dict(names=STATES, given=lambda: images(16))),
    "clip-text": (T.CLIPTextModelWithProjection, T.CLIPTextConfig(**TOWER, projection_dim=24), dict(names=("text_embeds", "last_hidden_state"), given=lambda: texts((8, 5), 0, ends=2))),
    "clip-image": (T.CLIPVisionModelWithProjection, T.CLIPVisionConfig(**VISION, projection_dim=24), dict(names=("image_embeds", "last_hidden_state"), given=lambda: images(8))),
    "siglip-text": (T.SiglipTextModel, T.SiglipTextConfig(**TOWER), dict(names=STATES, given=lambda: {"input_ids": texts((16, 16), 1)["input_ids"]})),
    "siglip-image": (T.SiglipVisionModel, T.SiglipVisionConfig(**VISION), dict(names=STATES, given=lambda: images(8))),
    "deberta-v2": (T.DebertaV2Model, T.DebertaV2Config(**DEBERTA, pos_att_type=["p2c", "c2p"]), dict(names=STATES, lengths=(14, 9), left=True)),
    "deberta-v2-labels": (T.DebertaV2ForSequenceClassification, T.DebertaV2Config(**{**DEBERTA, "share_att_key": False, "position_biased_input": True}, pos_att_type="c2p", num_labels=3), dict(lengths=(14, 9), left=True)),
}


def packed(name, kind, config, note):
    """Puts the experts of a model into blocks of 32 4-bit values and a scale, as gpt-oss is published, and asks what the values then are."""
    folder = make(name, kind, config, note=note)
    four = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
    plain, small = load_file(f"{folder}/model.safetensors"), {}
    for tensor, values in plain.items():
        if not ("experts" in tensor and tensor.endswith("_proj")):
            small[tensor] = values
            continue
        experts, inputs, outputs = values.shape
        blocks = values.float().transpose(1, 2).reshape(experts, outputs, inputs // 32, 32)
        scales = torch.floor(torch.log2(blocks.abs().amax(-1, keepdim=True) / 6)) + 1
        codes = (blocks / 2**scales).unsqueeze(-1).sub(four).abs().argmin(-1)
        small[tensor + "_blocks"] = (codes[..., ::2] | codes[..., 1::2] << 4).to(torch.uint8)
        small[tensor + "_scales"] = (scales.squeeze(-1) + 127).to(torch.uint8)
        plain[tensor] = (four[codes] * 2**scales).reshape(experts, outputs, inputs).transpose(1, 2).contiguous().to(torch.bfloat16)
    save_file(plain, f"{folder}/model.safetensors", {"format": "pt"})
    expect(folder, "expected.json", loaded(kind, folder), texts((7, 4), 0), ("logits",), note)
    save_file(small, f"{folder}/model.safetensors", {"format": "pt"})
    described = json.load(open(f"{folder}/config.json"))
    described["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}
    json.dump(described, open(f"{folder}/config.json", "w"), indent=2)


with torch.no_grad():
    for name in sys.argv[2:] or MODELS:
        kind, config, rest = MODELS[name]
        if name.endswith("mxfp4"): packed(name, kind, config, rest["note"])
        else: make(name, kind, config, **rest)
print(T.__version__, torch.__version__)
