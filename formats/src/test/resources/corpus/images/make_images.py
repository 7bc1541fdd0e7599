"""Makes pictures of many kinds with Pillow, and what Pillow makes of them: SHA-256 of RGB, rows end to end.
make_images.py FOLDER [SEED]"""
import hashlib, os, struct, sys, zlib
import numpy as np
from PIL import Image

out, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
rng = np.random.default_rng(seed)
os.makedirs(out, exist_ok=True)
expected = {}

def picture(w, h, channels=3, depth=8):
    """Waves and some noise: neither flat nor only noise."""
    y, x = np.mgrid[0:h, 0:w]
    planes = []
    for c in range(channels):
        a, b, p = rng.uniform(0.02, 0.3), rng.uniform(0.02, 0.3), rng.uniform(0, 6)
        planes.append(127 + 90 * np.sin(a * x + b * y + p) + rng.normal(0, 12, (h, w)))
    v = np.clip(np.stack(planes, -1), 0, 255)
    return (v * 257 if depth == 16 else v).astype(np.uint16 if depth == 16 else np.uint8)

def digest(image):
    return hashlib.sha256(image.tobytes()).hexdigest()

def verdicts(name, oriented=None):
    rgb = Image.open(os.path.join(out, name))
    if rgb.mode == "I;16":
        rgb = Image.fromarray((np.asarray(rgb) >> 8).astype(np.uint8))
    rgb = rgb.convert("RGB")
    w, h = rgb.size
    v = {"width": w, "height": h, "pixels": digest(rgb)}
    v["stretch"] = digest(rgb.resize((32, 24), Image.BILINEAR))
    v["bicubic"] = digest(rgb.resize((32, 24), Image.BICUBIC))
    short, long = (w, h) if w <= h else (h, w)
    new = (40, int(40 * h / w)) if w <= h else (int(40 * w / h), 40)
    r = rgb.resize(new, Image.BILINEAR)
    x, y = int(round((r.width - 32) / 2.0)), int(round((r.height - 32) / 2.0))
    v["centre"] = digest(r.crop((x, y, x + 32, y + 32)))
    if oriented:
        v["upright"] = digest(rgb.transpose(oriented).resize((32, 24), Image.BILINEAR))
    expected[name] = v

def save(name, image, **options):
    image.save(os.path.join(out, name), **options)
    verdicts(name)

for name, size, sub in (("444", (61, 47), 0), ("422", (61, 47), 1), ("420", (160, 121), 2)):
    save(f"rgb-{name}.jpg", Image.fromarray(picture(*size)), quality=90, subsampling=sub)
save("progressive.jpg", Image.fromarray(picture(90, 50)), quality=85, progressive=True)
save("grey.jpg", Image.fromarray(picture(50, 70)[:, :, 0]), quality=85)
save("cmyk.jpg", Image.fromarray(picture(50, 70, 4), "CMYK"), quality=95)
save("restart.jpg", Image.fromarray(picture(80, 64)), quality=80, restart_marker_blocks=3)
save("large.jpg", Image.fromarray(picture(420, 300)), quality=70)
save("adobe-rgb.jpg", Image.fromarray(picture(40, 40)), quality=95, keep_rgb=True)
turns = {2: Image.FLIP_LEFT_RIGHT, 3: Image.ROTATE_180, 4: Image.FLIP_TOP_BOTTOM, 5: Image.TRANSPOSE, 6: Image.ROTATE_270, 7: Image.TRANSVERSE, 8: Image.ROTATE_90}
for o, turn in turns.items():
    exif = Image.Exif(); exif[0x0112] = o
    name = f"orientation-{o}.jpg"
    Image.fromarray(picture(60, 40)).save(os.path.join(out, name), quality=90, exif=exif.tobytes())
    verdicts(name, turn)
exif = Image.Exif(); exif[0x0112] = 6
Image.fromarray(picture(60, 40)).save(os.path.join(out, "orientation-6.png"), exif=exif.tobytes())
verdicts("orientation-6.png", turns[6])
save("rgb.png", Image.fromarray(picture(61, 47)))
save("rgba.png", Image.fromarray(picture(61, 47, 4), "RGBA"))
save("grey.png", Image.fromarray(picture(33, 20)[:, :, 0]))
save("grey-alpha.png", Image.fromarray(picture(33, 20, 2), "LA"))
save("one-bit.png", Image.fromarray(picture(37, 41)[:, :, 0]).convert("1"))
save("palette.png", Image.fromarray(picture(61, 47)).quantize(200))
save("palette-4.png", Image.fromarray(picture(61, 47)).quantize(13), bits=4)
save("palette-transparent.png", Image.fromarray(picture(61, 47)).quantize(100), transparency=3)
save("grey-16.png", Image.fromarray(picture(30, 40, 1, 16)[:, :, 0]))
save("wide.png", Image.fromarray(picture(300, 2)))
save("dot.png", Image.fromarray(picture(1, 1)))

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

def png(w, h, depth, color, rows, interlace=0, extra=b""):
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, color, 0, 0, interlace)) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")

def raw(name, data, check=True):
    open(os.path.join(out, name), "wb").write(data)
    if check: verdicts(name)

p = picture(21, 17, 3, 16)
raw("rgb-16.png", png(21, 17, 16, 2, b"".join(b"\0" + r.astype(">u2").tobytes() for r in p)))
v = rng.integers(0, 256, (17, 6), np.uint8)
raw("grey-2.png", png(21, 17, 2, 0, b"".join(b"\0" + r.tobytes() for r in v)))
p = picture(13, 11)
rows = b"".join(b"\0" + p[y0::dy, x0::dx][i].tobytes() for x0, y0, dx, dy in ((0,0,8,8),(4,0,8,8),(0,4,4,8),(2,0,4,4),(0,2,2,4),(1,0,2,2),(0,1,1,2)) for i in range(len(p[y0::dy, x0::dx])))
raw("interlaced.png", png(13, 11, 8, 2, rows, 1))
p = picture(13, 11)
rows = b"".join(b"\0" + r.tobytes() for r in p)
raw("text-bomb.png", png(13, 11, 8, 2, rows, extra=chunk(b"zTXt", b"k\0\0" + zlib.compress(b"\0" * 500_000))))

def bad(name, data, why):
    raw(name, data, False)
    expected[name] = {"refused": why}

jpeg = open(os.path.join(out, "rgb-420.jpg"), "rb").read()
good = open(os.path.join(out, "rgb.png"), "rb").read()
bad("truncated.jpg", jpeg[: len(jpeg) // 2], "cut off")
bad("truncated.png", good[: len(good) // 2], "cut off")
sof = jpeg.index(b"\xff\xc0")
bad("bomb.jpg", jpeg[: sof + 5] + b"\xff\xff\xff\xff" + jpeg[sof + 9 :], "pixels")
bad("no-height.jpg", jpeg[: sof + 5] + b"\0\0" + jpeg[sof + 7 :], "pixels")
bad("twelve-bits.jpg", jpeg[: sof + 4] + b"\x0c" + jpeg[sof + 5 :], "not decoded")
bad("bomb.png", png(60000, 60000, 1, 0, b"\0"), "pixels")
bad("thin-bomb.png", png(1 << 30, 1, 1, 0, b"\0"), "pixels")
bad("checksum.png", good[:60] + bytes([good[60] ^ 1]) + good[61:], "checksum")
bad("short-data.png", png(40, 40, 8, 2, b"\0" * 50), "decode")
bad("colour-type.png", png(4, 4, 8, 5, b"\0" * 40), "colour type")
bad("gif.jpg", b"GIF89a" + bytes(40), "neither")
bad("empty.jpg", b"", "neither")
scan = jpeg.index(b"\xff\xda")
pj = open(os.path.join(out, "progressive.jpg"), "rb").read()
s = pj.rindex(b"\xff\xda")
bad("many-scans.jpg", pj[:-2] + pj[s:-2] * 101 + b"\xff\xd9", "scans")
with open(os.path.join(out, "expected.txt"), "w") as f:
    for name, v in expected.items():
        for op, value in v.items():
            if op not in ("width", "height"):
                f.write(f"{name}\t{op}\t{value}\n")
print(len(expected), sum(os.path.getsize(os.path.join(out, f)) for f in os.listdir(out)))
