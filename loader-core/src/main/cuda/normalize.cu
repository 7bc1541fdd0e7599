// SPDX-License-Identifier: Apache-2.0
//
// The kernel that makes `value * scale + shift` of the elements of samples, with a scale and a shift of each channel,
// and puts channels that come last first. Samples lie in page cache that is registered with the driver, or on the
// device, at any offset. `CudaNormalizer` launches it.
//
// make-ptx.sh compiles it into PTX that the jar has and the driver compiles.
#include <cuda_fp16.h>

#include "pieces.cuh"

constexpr int THREADS = 256;
constexpr int STAGE_BYTES = 16 << 10;
constexpr int MOST_CHANNELS = 256;

// As CudaNormalizer.code says.
enum Type : uint32_t { BOOL, U8, I8, I16, U16, F16, BF16, I32, U32, F32, F64, I64, U64 };

// CudaNormalizer lays it out likewise. A unit is a pixel where channels come last, else an element.
struct Piece {
  const uint8_t* source;  // of its first unit
  uint8_t* target;        // of the sample's first element
  uint32_t first;         // unit of the sample
  uint32_t units;         // STAGE_BYTES at most
};

struct Normalization {
  const Piece* pieces;
  uint64_t count;   // of pieces
  uint64_t pixels;  // of one channel of a sample
  uint32_t channels;
  uint32_t channels_last;
  uint32_t from;
  uint32_t to;
  float scale[MOST_CHANNELS];
  float shift[MOST_CHANNELS];
};

__device__ __forceinline__ uint32_t size_of(uint32_t type) {
  return type <= I8 ? 1 : type <= BF16 ? 2 : type <= F32 ? 4 : 8;
}

// Elements may begin at any byte.
__device__ __forceinline__ uint64_t bits_at(const uint8_t* at, uint32_t bytes) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < bytes; i++) {
    bits |= (uint64_t)at[i] << (8 * i);
  }
  return bits;
}

__device__ __forceinline__ float value_at(const uint8_t* at, uint32_t type) {
  if (type == U8) {
    return *at;
  }
  uint64_t bits = bits_at(at, size_of(type));
  switch (type) {
    case BOOL:
      return bits != 0 ? 1 : 0;
    case I8:
      return (int8_t)bits;
    case I16:
      return (int16_t)bits;
    case U16:
      return (uint16_t)bits;
    case F16:
      return __half2float(__ushort_as_half((uint16_t)bits));
    case BF16:
      return __uint_as_float((uint32_t)bits << 16);
    case I32:
      return __int2float_rn((int32_t)bits);
    case U32:
      return __uint2float_rn((uint32_t)bits);
    case F32:
      return __uint_as_float((uint32_t)bits);
    case F64:
      return __double2float_rn(__longlong_as_double(bits));
    case I64:
      return __ll2float_rn((int64_t)bits);
    default:
      return __ull2float_rn(bits);
  }
}

__device__ __forceinline__ void store(uint8_t* target, uint32_t type, uint64_t index, float value) {
  if (type == F32) {
    reinterpret_cast<uint32_t*>(target)[index] =
        value != value ? 0x7fc00000 : __float_as_uint(value);
    return;
  }
  uint32_t bits = __float_as_uint(value);
  uint32_t half = type == F16 ? (value != value ? 0x7e00 : __half_as_ushort(__float2half_rn(value)))
                              : (value != value ? 0x7fc0 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  reinterpret_cast<uint16_t*>(target)[index] = (uint16_t)half;
}

__device__ __forceinline__ void make(const Normalization& to_do, const Piece& piece, uint4* staged) {
  uint32_t element = size_of(to_do.from);
  uint32_t channels = to_do.channels;
  uint32_t unit = to_do.channels_last ? element * channels : element;
  uint32_t skew = (uintptr_t)piece.source & 15;
  // Aligned loads that each hold a byte that is wanted, so that none leaves the memory.
  const uint4* from = reinterpret_cast<const uint4*>((uintptr_t)piece.source & ~(uintptr_t)15);
  uint32_t loads = (skew + piece.units * unit + 15) / 16;
  for (uint32_t i = threadIdx.x; i < loads; i += THREADS) {
    staged[i] = from[i];
  }
  __syncthreads();
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(staged) + skew;
  // The product is rounded, and then the sum, as everywhere else: no fused multiply-add.
  if (to_do.channels_last) {
    for (uint32_t channel = 0; channel < channels; channel++) {
      float scale = to_do.scale[channel];
      float shift = to_do.shift[channel];
      uint64_t start = channel * to_do.pixels + piece.first;
      for (uint32_t i = threadIdx.x; i < piece.units; i += THREADS) {
        float value = value_at(bytes + i * unit + channel * element, to_do.from);
        store(piece.target, to_do.to, start + i, __fadd_rn(__fmul_rn(value, scale), shift));
      }
    }
    return;
  }
  for (uint32_t i = threadIdx.x; i < piece.units; i += THREADS) {
    uint32_t index = piece.first + i;
    uint32_t channel = channels == 1 ? 0 : index / (uint32_t)to_do.pixels;
    float value = value_at(bytes + i * element, to_do.from);
    value = __fadd_rn(__fmul_rn(value, to_do.scale[channel]), to_do.shift[channel]);
    store(piece.target, to_do.to, index, value);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) normalize(const __grid_constant__ Normalization to_do) {
  __shared__ uint4 staged[STAGE_BYTES / 16 + 1];
  each_piece(to_do, [&](const Piece& piece) {
    make(to_do, piece, staged);
    // The next piece overwrites what this one has staged.
    __syncthreads();
  });
}
