// SPDX-License-Identifier: Apache-2.0
//
// The kernels that fetch bytes of the host share this: each block does several pieces of a table. The link needs few bytes
// in flight, and blocks for all pieces would keep the kernels of a training from the processors.
#include <stdint.h>

// Does a block's pieces, one after the other. The next entry of the table, which is in host memory too, comes meanwhile.
template <typename Table, typename Work>
__device__ __forceinline__ void each_piece(const Table& table, Work work) {
  uint64_t i = blockIdx.x;
  auto piece = table.pieces[i];
  while (i < table.count) {
    i += gridDim.x;
    auto next = i < table.count ? table.pieces[i] : piece;
    work(piece);
    piece = next;
  }
}
