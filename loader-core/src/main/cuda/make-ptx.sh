#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the kernels into the PTX that the jar has. Run it after each change of one or of a header; needs nvcc (used:
# CUDA 13.0).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
resources=../resources/dev/gantry/core/internal
ptxas=$(command -v ptxas || echo "$(dirname "$(command -v nvcc)")/ptxas")
[[ -x $ptxas ]] || ptxas=/usr/local/cuda/bin/ptxas

# compile SOURCE PTX [OPTION...]
compile() {
  local source=$1 ptx=$2
  shift 2
  mkdir -p "$(dirname "$ptx")"
  {
    echo "// Made by make-ptx.sh of $source with SHA-256 $(cat *.cuh "$source" | sha256sum | cut -d' ' -f1)"
    # nvcc names its own version of PTX, which older drivers refuse. Drivers since CUDA 10.2 take 6.5, which does not know
    # the hint about bytes that are not used.
    nvcc -ptx -arch=compute_75 -O3 "$@" -o - "$source" |
      sed -e 's/^\.version .*/.version 6.5/' -e '/used_bytes_mask/d'
  } > "$ptx"
  # Complains if an instruction needs more than that.
  "$ptxas" -arch=sm_75 -o /dev/null "$ptx"
}

compile gather.cu "$resources/mapped/gather.ptx"
compile copies.cu "$resources/copies/copies.ptx"
compile normalize.cu "$resources/convert/normalize.ptx"
compile resample.cu "$resources/convert/resample.ptx"
compile rows.cu "$resources/convert/rows.ptx"
