// SPDX-License-Identifier: Apache-2.0
//
// The kernel that does many small copies from pinned memory by one launch. `CopyKernel` launches it.
//
// make-ptx.sh compiles it into PTX that the jar has and the driver compiles.
#include "copy_piece.cuh"

// CopyKernel has the same number. A kernel's parameter has at most 4,096 bytes.
constexpr int MAX_PIECES = 170;

struct Copies {
  uint64_t count;
  Piece pieces[MAX_PIECES];
};

extern "C" __global__ void __launch_bounds__(THREADS) copies(const Copies to_do) {
  each_piece(to_do, [](const Piece& piece) { copy(piece); });
}
