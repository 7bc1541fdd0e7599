# SPDX-License-Identifier: Apache-2.0
"""Writes python-cache.txt: what huggingface_hub (1.33.0) leaves in its cache folder after it was asked for the
files of one model. Serve the three files below as org/tiny on a hub of your own, with files of 1000 bytes and more in
large file storage, and run this with HF_ENDPOINT and an empty HF_HOME.

Lines: "f PATH BASE64" for a file, "l PATH TARGET" for a link. CACHEDIR.TAG is left out."""

import base64
import os

from huggingface_hub import constants, hf_hub_download, snapshot_download
from huggingface_hub.errors import EntryNotFoundError

FILES = {
    "config.json": b'{"a": 1}\n',
    "sub/vocab.txt": b"one\ntwo\n",
    "weights.bin": bytes(i * 7 % 256 for i in range(2000)),
}

snapshot_download("org/tiny")
try:
    hf_hub_download("org/tiny", "generation_config.json")
except EntryNotFoundError:
    pass
lines = []
for folder, _, names in os.walk(constants.HF_HUB_CACHE):
    for name in names:
        path = os.path.join(folder, name)
        shown = os.path.relpath(path, constants.HF_HUB_CACHE)
        if os.path.islink(path):
            lines.append(f"l {shown} {os.readlink(path)}")
        elif name != "CACHEDIR.TAG":
            with open(path, "rb") as file:
                lines.append(f"f {shown} {base64.b64encode(file.read()).decode()}".rstrip())
print("\n".join(sorted(lines)))
