"""Measures how many texts a second a BERT-base with random weights embeds by transformers and, if installed, sentence-transformers: python3
texts.py FOLDER [DEVICE]. The script makes the model in FOLDER if it is missing, also for `Measure texts FOLDER DEVICE`. It prints one line a
figure: name, type, texts x tokens, texts/s."""
import os, sys, time
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel, PreTrainedTokenizerFast

folder = sys.argv[1]
device = sys.argv[2] if len(sys.argv) > 2 else "cuda"
torch.backends.cuda.matmul.allow_tf32 = False
SHAPES = ((32, 128), (256, 64), (1, 16))


def make():
    words = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(20000)])}
    t = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    special = {f"{n}_token": f"[{n.upper()}]" for n in ("pad", "unk", "cls", "sep", "mask")}
    PreTrainedTokenizerFast(tokenizer_object=t, model_max_length=512, **special).save_pretrained(folder)
    BertModel(BertConfig(), add_pooling_layer=False).save_pretrained(folder)


def texts(count, tokens):
    return [" ".join(f"w{(i * 131 + j * 17) % 20000}" for j in range(tokens - 2)) for i in range(count)]


def report(name, dtype, shape, encode):
    given = texts(*shape)
    for _ in range(3):
        encode(given)
    best, runs, end = float("inf"), 0, time.perf_counter() + 2
    while runs < (20 if device == "cuda" else 3) or time.perf_counter() < end:
        best, runs = min(best, timed(encode, given)), runs + 1
    print(f"{name}\t{str(dtype)[6:]}\t{shape[0]}x{shape[1]}\t{shape[0] / best:.1f} texts/s", flush=True)


def timed(encode, given):
    start = time.perf_counter()
    encode(given)
    return time.perf_counter() - start


def plain(model, tokenizer):
    @torch.inference_mode()
    def encode(given):
        inputs = tokenizer(given, padding=True, truncation=True, return_tensors="pt").to(device)
        states, mask = model(**inputs).last_hidden_state.float(), inputs["attention_mask"].unsqueeze(-1)
        return ((states * mask).sum(1) / mask.sum(1)).cpu().numpy()

    return encode


if not os.path.exists(os.path.join(folder, "model.safetensors")):
    make()
for dtype in (torch.float32, torch.bfloat16, torch.float16) if device == "cuda" else (torch.float32,):
    model, tokenizer = AutoModel.from_pretrained(folder, dtype=dtype).to(device).eval(), AutoTokenizer.from_pretrained(folder)
    for shape in SHAPES:
        report("transformers", dtype, shape, plain(model, tokenizer))
    del model
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        continue
    embedder = SentenceTransformer(folder, device=device, model_kwargs={"dtype": dtype})
    for shape in SHAPES:
        report("sentence-transformers", dtype, shape, lambda given: embedder.encode(given, batch_size=len(given)))
    del embedder
