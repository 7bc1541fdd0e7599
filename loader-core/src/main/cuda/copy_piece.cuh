// SPDX-License-Identifier: Apache-2.0
//
// A piece of a copy, and how a block copies one, from any address to any other. `gather.cu` and `copies.cu` share it.
#include "pieces.cuh"

constexpr int THREADS = 256;

// CopyPieces.java lays it out likewise.
struct Piece {
  const uint8_t* source;
  uint8_t* target;
  uint64_t bytes;
};

// Whole stores of 16 bytes, each made of two aligned loads: an aligned load stays within the page of
// the byte that is wanted, so it never leaves the registered memory.
__device__ __forceinline__ void copy_aligned(
    uint4* __restrict__ target, const uint8_t* __restrict__ source, uint64_t stores) {
  uint32_t offset = (uintptr_t)source & 15;
  const uint4* from = reinterpret_cast<const uint4*>((uintptr_t)source & ~(uintptr_t)15);
  if (offset == 0) {
    for (uint64_t i = threadIdx.x; i < stores; i += THREADS) {
      target[i] = from[i];
    }
    return;
  }
  uint32_t word = offset >> 2;
  uint32_t shift = (offset & 3) * 8;
  for (uint64_t i = threadIdx.x; i < stores; i += THREADS) {
    uint4 a = from[i];
    uint4 b = from[i + 1];
    uint32_t words[9] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, 0};
    uint4 out;
    uint32_t* to = &out.x;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      uint32_t low = 0;
      uint32_t high = 0;
#pragma unroll
      for (int w = 0; w < 4; w++) {
        if (word == w) {
          low = words[k + w];
          high = words[k + w + 1];
        }
      }
      to[k] = __funnelshift_r(low, high, shift);
    }
    target[i] = out;
  }
}

__device__ __forceinline__ void copy(const Piece& piece) {
  uint64_t head = (16 - ((uintptr_t)piece.target & 15)) & 15;
  if (head > piece.bytes) {
    head = piece.bytes;
  }
  uint64_t stores = (piece.bytes - head) / 16;
  uint64_t tail = head + 16 * stores;
  if (threadIdx.x < head) {
    piece.target[threadIdx.x] = piece.source[threadIdx.x];
  }
  copy_aligned(reinterpret_cast<uint4*>(piece.target + head), piece.source + head, stores);
  if (threadIdx.x < piece.bytes - tail) {
    piece.target[tail + threadIdx.x] = piece.source[tail + threadIdx.x];
  }
}
