#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles convert.cu into the PTX that the jar has. Run it after each change of convert.cu; needs nvcc (used: CUDA 13.0).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
to=../resources/dev/gantry/core/internal/convert
mkdir -p "$to"
for type in bf16 f16 f32; do
  {
    echo "// Made by make-ptx.sh of convert.cu with SHA-256 $(sha256sum convert.cu | cut -d' ' -f1)"
    # nvcc names its own version of PTX, which older drivers refuse. Drivers since CUDA 10.2 take 6.5.
    nvcc -ptx -arch=compute_75 -O3 "-DTO=$type" "-DENTRY=convert_to_$type" -o - convert.cu | sed -e 's/^\.version .*/.version 6.5/'
  } > "$to/convert_to_$type.ptx"
  # Complains if an instruction needs more than that.
  ptxas=$(command -v ptxas || echo "$(dirname "$(command -v nvcc)")/ptxas")
  [[ -x $ptxas ]] || ptxas=/usr/local/cuda/bin/ptxas
  "$ptxas" -arch=sm_75 -o /dev/null "$to/convert_to_$type.ptx"
done
