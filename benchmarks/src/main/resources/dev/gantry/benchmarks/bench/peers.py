"""Loads safetensors files with Python libraries, the peers of `gantry bench`: peers.py cpu|cuda:N

It prints "have NAME VERSION" or "lack NAME REASON" for each peer, then "ready". For each line "NAME FILE SPARE" of
standard input it loads FILE and prints "seconds S" or "error REASON". SPARE is a path for a copy of FILE in the
peer's own format. Tabs separate all fields.
"""
import contextlib
import gc
import importlib
import os
import sys
import time

device = sys.argv[1]
modules = {}


def say(*fields):
    print("\t".join(str(field).replace("\n", " ").replace("\t", " ") for field in fields), flush=True)


def find(name):
    try:
        modules[name] = importlib.import_module(name)
        return None
    except Exception as e:
        return f"{type(e).__name__}: {e}"


def touch(arrays):
    """Reads every page: a load on the CPU only maps the file, whose bytes are read on first access."""
    total = 0
    for array in arrays:
        flat = array.reshape(-1).view(modules["numpy"].uint8 if "torch" not in modules else modules["torch"].uint8)
        total += int(flat[::4096].sum())
    return total


def by_safetensors(path, spare, closing):
    if "torch" in modules:
        from safetensors.torch import load_file
        loaded = load_file(path, device=device)
    else:
        from safetensors.numpy import load_file
        loaded = load_file(path)
    if device == "cpu":
        touch(loaded.values())
    return loaded


def by_torch(path, spare, closing):
    loaded = modules["torch"].load(spare, map_location=device, mmap=True, weights_only=True)
    if device == "cpu":
        touch(loaded.values())
    return loaded


def by_fastsafetensors(through_cufile):
    def load(path, spare, closing):
        from fastsafetensors import SafeTensorsFileLoader, SingleGroup
        loader = SafeTensorsFileLoader(
            SingleGroup(), modules["torch"].device(device), nogds=not through_cufile, max_threads=16)
        closing.callback(loader.close)
        loader.add_filenames({0: [path]})
        held = loader.copy_files_to_device()
        # Nothing but this call frees its memory.
        closing.callback(held.close)
        return [held.get_tensor(name) for name in held.key_to_rank_lidx]
    return load


def prepare(name, path, spare):
    if name == "torch.load, mmap" and not os.path.exists(spare):
        from safetensors.torch import load_file
        modules["torch"].save(load_file(path), spare)
        descriptor = os.open(spare, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def measure(load, path, spare):
    with contextlib.ExitStack() as closing:
        if device != "cpu":
            modules["torch"].cuda.synchronize()
        start = time.perf_counter()
        kept = load(path, spare, closing)
        if device != "cpu":
            modules["torch"].cuda.synchronize()
        took = time.perf_counter() - start
        del kept
        return took


torch_lack = find("torch")
safetensors_lack = find("safetensors") or (torch_lack and find("numpy"))
fast_lack = torch_lack or find("fastsafetensors")
if torch_lack is None and device != "cpu" and not modules["torch"].cuda.is_available():
    torch_lack = safetensors_lack = fast_lack = "torch finds no CUDA device"
if fast_lack is None and device == "cpu":
    fast_lack = "it loads to CUDA devices"
peers = {}
for name, lack, load in (
    ("safetensors load_file", safetensors_lack, by_safetensors),
    ("torch.load, mmap", torch_lack or safetensors_lack, by_torch),
    ("fastsafetensors", fast_lack, by_fastsafetensors(False)),
    ("fastsafetensors, cuFile", fast_lack, by_fastsafetensors(True)),
):
    if lack:
        say("lack", name, lack)
    else:
        peers[name] = load
        say("have", name, getattr(modules.get(name.split()[0].split(".")[0].rstrip(",")), "__version__", "?"))
say("ready")
for line in sys.stdin:
    name, path, spare = line.rstrip("\n").split("\t")
    try:
        if name.startswith("+"):
            prepare(name[1:], path, spare)
            answer = "seconds", 0
        else:
            answer = "seconds", measure(peers[name], path, spare)
    except Exception as e:
        answer = "error", f"{type(e).__name__}: {e}"
    # All memory is free before the next contender's turn begins.
    if device != "cpu":
        gc.collect()
        modules["torch"].cuda.empty_cache()
    say(*answer)
