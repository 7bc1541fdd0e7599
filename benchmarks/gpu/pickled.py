"""Writes the tensors of a Llama in BF16, with random values, as FOLDER/llama.safetensors and FOLDER/llama.pt: pickled.py FOLDER BYTES.
A layer has 9 tensors. The number of layers is chosen so that each file has about BYTES bytes.
"""
import os
import sys

import safetensors.torch
import torch

WIDTH, INNER, WORDS = 2560, 6912, 32000
LAYER = {"self_attn.q_proj": (WIDTH, WIDTH), "self_attn.k_proj": (WIDTH // 4, WIDTH), "self_attn.v_proj": (WIDTH // 4, WIDTH),
         "self_attn.o_proj": (WIDTH, WIDTH), "mlp.gate_proj": (INNER, WIDTH), "mlp.up_proj": (INNER, WIDTH),
         "mlp.down_proj": (WIDTH, INNER), "input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,)}


def main():
    folder, total = sys.argv[1], int(sys.argv[2])
    shapes = {"model.embed_tokens": (WORDS, WIDTH), "model.norm": (WIDTH,), "lm_head": (WORDS, WIDTH)}
    values = sum(torch.Size(shape).numel() for shape in LAYER.values())
    for layer in range(max(1, total // 2 // values)):
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in LAYER.items()}
    torch.manual_seed(7)
    tensors = {name + ".weight": torch.randn(shape).to(torch.bfloat16) for name, shape in shapes.items()}
    os.makedirs(folder, exist_ok=True)
    safetensors.torch.save_file(tensors, folder + "/llama.safetensors")
    torch.save(tensors, folder + "/llama.pt")


main()
