"""Makes a folder of random quantised weights for each format of quantisation, for Measure dequantise: quantised.py FOLDER BYTES [KIND...]
Each tensor has 8192 rows of 8192 values. The number of tensors is chosen so that a folder has about BYTES bytes.
"""
import json
import os
import struct
import sys

N = 8192
PREFIX = "model.layers.{}.mlp.up_proj"
GGUF = {"q4_0": (2, 32, 18), "q8_0": (8, 32, 34), "q2_k": (10, 256, 84), "q4_k": (12, 256, 144), "q6_k": (14, 256, 210),
        "iq4_xs": (23, 256, 136)}
BITS = {"BF16": 16, "F16": 16, "F32": 32, "I32": 32, "I64": 64, "U8": 8, "F8_E4M3": 8}
NF4_STATE = json.dumps({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [N, N]}).encode()

# Each kind has a quantization_config, and the names of its tensors with dtype, shape and, unless they are random, bytes.
KINDS = {
    "bf16": (None, [(".weight", "BF16", [N, N])]),
    "fp8": ({"quant_method": "fp8", "weight_block_size": [128, 128]},
            [(".weight", "F8_E4M3", [N, N]), (".weight_scale_inv", "F32", [N // 128, N // 128])]),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True},
            [(".qweight", "I32", [N, N // 8]), (".qzeros", "I32", [N // 128, N // 8]), (".scales", "F16", [N // 128, N])]),
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False},
             [(".qweight", "I32", [N // 8, N]), (".qzeros", "I32", [N // 128, N // 8]), (".scales", "F16", [N // 128, N])]),
    "int4": ({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group": {
                 "targets": ["Linear"],
                 "weights": {"num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": True}}}},
             [(".weight_shape", "I64", [2], struct.pack("<qq", N, N)), (".weight_packed", "I32", [N, N // 8]),
              (".weight_scale", "BF16", [N, N // 32])]),
    "nvfp4": ({"quant_method": "modelopt", "quant_algo": "NVFP4"},
              [(".weight", "U8", [N, N // 2]), (".weight_scale", "F8_E4M3", [N, N // 16]), (".weight_scale_2", "F32", [])]),
    "mxfp4": ({"quant_method": "mxfp4"},
              [("_blocks", "U8", [8, N // 8, N // 32, 16]), ("_scales", "U8", [8, N // 8, N // 32])]),
    "nf4": ({"quant_method": "bitsandbytes", "load_in_4bit": True},
            [(".weight", "U8", [N * N // 2, 1]), (".weight.absmax", "F32", [N * N // 64]), (".weight.quant_map", "F32", [16]),
             (".weight.quant_state.bitsandbytes__nf4", "U8", [len(NF4_STATE)], NF4_STATE)]),
}


def size(dtype, shape):
    bits = BITS[dtype]
    for axis in shape:
        bits *= axis
    return bits // 8


def fill(file, count, noise):
    while count > 0:
        count -= file.write(noise[:min(count, len(noise))])


def safetensors(folder, total, noise, config, tensors):
    layers = max(1, total // sum(size(t[1], t[2]) for t in tensors))
    header, at, contents = {}, 0, []
    for layer in range(layers):
        for name, dtype, shape, *given in tensors:
            end = at + size(dtype, shape)
            header[PREFIX.format(layer) + name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, end]}
            contents.append(given[0] if given else end - at)
            at = end
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 4096)
    with open(folder + "/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for content in contents:
            if isinstance(content, bytes):
                file.write(content)
            else:
                fill(file, content, noise)
    with open(folder + "/config.json", "w") as file:
        json.dump({"quantization_config": config} if config else {}, file)


def gguf(folder, total, noise, number, values, block):
    def text(string):
        return struct.pack("<Q", len(string)) + string.encode()

    each = N * N // values * block
    layers = max(1, total // each)
    header = b"GGUF" + struct.pack("<IQQ", 3, layers, 1) + text("general.architecture") + struct.pack("<I", 8) + text("llama")
    for layer in range(layers):
        header += text(f"blk.{layer}.ffn_up.weight") + struct.pack("<IQQIQ", 2, N, N, number, layer * each)
    header += b"\0" * (-len(header) % 32)
    with open(folder + "/model.gguf", "wb") as file:
        file.write(header)
        fill(file, layers * each, noise)


def main():
    noise = os.urandom(32 << 20)
    for kind in sys.argv[3:] or [*KINDS, *GGUF]:
        folder = os.path.join(sys.argv[1], kind)
        os.makedirs(folder, exist_ok=True)
        if kind in GGUF:
            gguf(folder, int(sys.argv[2]), noise, *GGUF[kind])
        else:
            safetensors(folder, int(sys.argv[2]), noise, *KINDS[kind])


main()
