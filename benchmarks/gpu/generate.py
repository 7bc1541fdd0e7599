"""Measures tokens a second of a Llama with random weights by transformers: python3 generate.py FOLDER DEVICE WIDTH LAYERS TEXTS [PROMPT]
If FOLDER has no model, the script only makes it, also for `Measure generate FOLDER DEVICE TEXTS [PROMPT]`, which prints the same lines.
GANTRY_STARTED gives the process's start in nanoseconds since 1970."""
import os, sys, time
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

folder, device, width, layers, texts = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
length = int(sys.argv[6]) if len(sys.argv) > 6 else 128
WORDS, TOKENS = 128256, 64 if device == "cuda" else 24
dtype = torch.bfloat16 if device == "cuda" else torch.float32
torch.backends.cuda.matmul.allow_tf32 = False


def make():
    config = LlamaConfig(vocab_size=WORDS, hidden_size=width, intermediate_size=width * 7 // 2, num_hidden_layers=layers, num_attention_heads=32, num_key_value_heads=8,
        max_position_embeddings=8192, rope_theta=500000.0, tie_word_embeddings=device != "cuda", bos_token_id=1, eos_token_id=None)
    with torch.device(device):
        AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)


def synchronised():
    if device == "cuda": torch.cuda.synchronize()


def seconds(count, tokens, **more):
    prompts = torch.tensor([[(i * 131 + j * 17) % 20000 for j in range(length)] for i in range(count)], device=device)
    synchronised()
    start = time.perf_counter()
    made = model.generate(prompts, attention_mask=torch.ones_like(prompts), min_new_tokens=tokens, max_new_tokens=tokens, pad_token_id=0, **more)
    made.cpu()
    return time.perf_counter() - start


def report(count, **more):
    first, all_of_them = [], []
    for turn in range(4):
        first.append(seconds(count, 1, **more))
        all_of_them.append(seconds(count, TOKENS, **more))
    one, many = min(first), min(all_of_them)
    print(f"transformers\t{str(dtype)[6:]}\t{'sampled' if more['do_sample'] else 'greedy'}\t{count} x {length}\tfirst token {one * 1e3:.1f} ms\t{count * (TOKENS - 1) / (many - one):.1f} tokens/s", flush=True)


if not os.path.exists(os.path.join(folder, "config.json")):
    make()
    print("made", folder)
    sys.exit()
model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, device_map=device if device == "cuda" else None).eval()
with torch.inference_mode():
    seconds(1, 1, do_sample=False)
    print(f"transformers\tfirst answer of the process\t{(time.time_ns() - int(os.environ['GANTRY_STARTED'])) / 1e6:.0f} ms", flush=True)
    for count in sorted({1, texts}):
        report(count, do_sample=False)
    report(1, do_sample=True, temperature=0.8, top_k=0, top_p=1.0)
