# SPDX-License-Identifier: Apache-2.0
"""Reads WebDataset archives of JPEGs to batches of uint8, for PicturesBench: pictures.py WORKERS BATCH ARCHIVE...

It prints the names of the loaders whose packages are installed, and the packages' versions. Each line of its input then names a
loader and a transform; the script reads all archives once and prints how many pictures they hold and how many seconds this took.
"""
import io
import sys
import tarfile
import time

import numpy
import torch
import torchvision
from PIL import Image, features
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

WORKERS, BATCH, ARCHIVES = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
VERSIONS = [
    f"torch {torch.__version__}",
    f"torchvision {torchvision.__version__}",
    f"Pillow {Image.__version__} with libjpeg-turbo {features.version('libjpeg_turbo')}",
]
TRANSFORMS = {
    "train": v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]),
    "evaluate": v2.Compose([v2.Resize(256, antialias=True), v2.CenterCrop(224)]),
}


def by_pillow(encoded):
    return Image.open(io.BytesIO(encoded)).convert("RGB")


def by_torchvision(encoded):
    data = torch.frombuffer(bytearray(encoded), dtype=torch.uint8)
    return torchvision.io.decode_jpeg(data, mode=torchvision.io.ImageReadMode.RGB)


def tensor(picture):
    return picture if isinstance(picture, torch.Tensor) else torch.from_numpy(numpy.array(picture))


class Archives(Dataset):
    """The samples of the archives by number. Each worker opens the files itself."""

    def __init__(self, decode, transform):
        self.decode, self.transform, self.files = decode, transform, {}
        self.samples = []
        for archive in ARCHIVES:
            with tarfile.open(archive) as tar:
                members = {m.name: (archive, m.offset_data, m.size) for m in tar}
            names = sorted({name.split(".")[0] for name in members})
            self.samples += [(members[n + ".jpg"], members[n + ".cls"]) for n in names]

    def __len__(self):
        return len(self.samples)

    def read(self, archive, offset, size):
        if archive not in self.files:
            self.files[archive] = open(archive, "rb")
        self.files[archive].seek(offset)
        return self.files[archive].read(size)

    def __getitem__(self, number):
        picture, label = (self.read(*member) for member in self.samples[number])
        return tensor(self.transform(self.decode(picture))), int(label)


def of_torch(decode, transform):
    return DataLoader(
        Archives(decode, transform), BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True
    )


def of_webdataset(transform):
    import webdataset

    samples = webdataset.WebDataset(ARCHIVES, shardshuffle=len(ARCHIVES), empty_check=False).shuffle(500)
    samples = samples.decode("pilrgb").to_tuple("jpg", "cls").map_tuple(lambda p: tensor(transform(p)), int)
    return webdataset.WebLoader(
        samples.batched(BATCH, partial=True), batch_size=None, num_workers=WORKERS, persistent_workers=True
    )


LOADERS = {
    "torch.utils.data, Pillow": lambda t: of_torch(by_pillow, t),
    "torch.utils.data, torchvision.io.decode_jpeg": lambda t: of_torch(by_torchvision, t),
}
try:
    import webdataset

    VERSIONS.append(f"webdataset {webdataset.__version__}")
    LOADERS["webdataset, Pillow"] = of_webdataset
except ImportError:
    VERSIONS.append("no webdataset")


def main():
    loaders = {}
    print("\t".join(LOADERS), ", ".join(VERSIONS), sep="\n", flush=True)
    for line in sys.stdin:
        name, transform = key = tuple(line.rstrip("\n").split("\t"))
        if key not in loaders:
            loaders[key] = LOADERS[name](TRANSFORMS[transform])
        start = time.perf_counter()
        pictures = 0
        for batch, _ in loaders[key]:
            pictures += len(batch)
        print(pictures, time.perf_counter() - start, sep="\t", flush=True)


main()
