// SPDX-License-Identifier: Apache-2.0
//
// The kernel that fetches rows of bytes from page cache that is registered with the driver, from any
// offset to any other. `GatherKernel` launches it.
//
// make-ptx.sh compiles it into PTX that the jar has and the driver compiles.
#include "copy_piece.cuh"

struct Gather {
  const Piece* pieces;
  uint64_t count;
};

extern "C" __global__ void __launch_bounds__(THREADS) gather(const Gather to_do) {
  each_piece(to_do, [](const Piece& piece) { copy(piece); });
}
