// SPDX-License-Identifier: Apache-2.0
//
// The kernel that turns 8-bit elements into wider ones, times their scales. `CudaConverter` launches it.
//
// make-ptx.sh compiles it, once for each type of results, into PTX that the jar has and the driver compiles.
#include <cuda_fp16.h>
#include <stdint.h>

constexpr int LANES = 32;
constexpr int THREADS = 256;
constexpr int STEPS = 4;
constexpr int STORE_BYTES = 16;

enum ScaleType : uint32_t { F32 = 0, BF16 = 1, F16 = 2, E8M0 = 3 };

// CudaConverter.parameters lays it out likewise.
struct Conversion {
  const uint8_t* source;
  const uint8_t* scales;  // null: none
  uint8_t* target;        // aligned to its elements
  int64_t elements;       // fewer than 2^31 where there are several scales
  uint32_t several;       // whether there is more than one scale; what follows, up to `scale_type`, is for that
  uint32_t first_row;     // of source and target, counted through all matrices
  uint32_t rows;          // of one matrix
  uint32_t columns;
  uint32_t block_rows;
  uint32_t block_columns;
  uint32_t scale_rows;  // of one matrix
  uint32_t scale_columns;
  uint32_t scale_type;
  uint32_t unused;
  float values[256];  // of the 256 codes
};

// Scales may begin at any byte.
__device__ __forceinline__ uint32_t bytes_at(const uint8_t* from, int count) {
  uint32_t bits = 0;
  for (int i = 0; i < count; i++) {
    bits |= (uint32_t)from[i] << (8 * i);
  }
  return bits;
}

__device__ __forceinline__ float scale_at(const Conversion& to_do, uint64_t index) {
  switch (to_do.scale_type) {
    case F32: {
      const uint8_t* at = to_do.scales + 4 * index;
      return __uint_as_float(
          ((uintptr_t)at & 3) == 0 ? *reinterpret_cast<const uint32_t*>(at) : bytes_at(at, 4));
    }
    case BF16:
      return __uint_as_float(bytes_at(to_do.scales + 2 * index, 2) << 16);
    case F16:
      return __half2float(__ushort_as_half((uint16_t)bytes_at(to_do.scales + 2 * index, 2)));
    default: {
      uint32_t exponent = to_do.scales[index];
      return __uint_as_float(
          exponent == 0 ? 0x00400000 : exponent == 255 ? 0x7fc00000 : exponent << 23);
    }
  }
}

// Where an element is, and how many from it on have the same scale.
struct Place {
  uint32_t column;
  uint32_t run = 0;
  uint64_t row_of_scales;  // the index of the first scale of its row
  float scale = 1;

  // From the element `by` before, or from anywhere where `by` is 0.
  __device__ __forceinline__ void go_to(const Conversion& to_do, uint32_t element, uint32_t by) {
    if (by > 0 && by < run) {
      column += by;
      run -= by;
      return;
    }
    if (by > 0 && column + by < to_do.columns) {
      column += by;
    } else {
      uint32_t row = element / to_do.columns;
      column = element - row * to_do.columns;
      row += to_do.first_row;
      uint32_t matrix = row < to_do.rows ? 0 : row / to_do.rows;
      uint32_t block = (row - matrix * to_do.rows) / to_do.block_rows;
      row_of_scales = ((uint64_t)matrix * to_do.scale_rows + block) * to_do.scale_columns;
    }
    uint32_t block = column / to_do.block_columns;
    uint32_t left = to_do.block_columns - (column - block * to_do.block_columns);
    run = left < to_do.columns - column ? left : to_do.columns - column;
    scale = scale_at(to_do, row_of_scales + block);
  }
};

struct bf16 {
  typedef uint16_t Bits;
  static __device__ __forceinline__ uint16_t of(float value) {
    uint32_t bits = __float_as_uint(value);
    return value != value ? 0x7fc0 : (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
};

struct f16 {
  typedef uint16_t Bits;
  static __device__ __forceinline__ uint16_t of(float value) {
    return value != value ? 0x7e00 : __half_as_ushort(__float2half_rn(value));
  }
};

struct f32 {
  typedef uint32_t Bits;
  static __device__ __forceinline__ uint32_t of(float value) {
    return value != value ? 0x7fc00000 : __float_as_uint(value);
  }
};

template <int BYTES>
struct Unsigned;
template <>
struct Unsigned<4> {
  typedef uint32_t Type;
};
template <>
struct Unsigned<8> {
  typedef uint64_t Type;
};

// Codes from any address, by aligned loads. Each holds a byte that is wanted, so none leaves the allocation.
template <typename Word>
__device__ __forceinline__ Word codes_at(const uint8_t* from) {
  uint32_t shift = 8 * ((uintptr_t)from & (sizeof(Word) - 1));
  const Word* aligned = reinterpret_cast<const Word*>(from - shift / 8);
  Word low = __ldg(aligned);
  return shift == 0 ? low : (low >> shift) | (__ldg(aligned + 1) << (8 * sizeof(Word) - shift));
}

// Each thread stores 16 bytes at once, at an aligned address; a warp's neighbours store neighbouring ones.
template <typename To>
__device__ __forceinline__ void convert_all(const Conversion& to_do) {
  typedef typename To::Bits Bits;
  constexpr int WIDTH = STORE_BYTES / sizeof(Bits);
  constexpr int STEP = LANES * WIDTH;
  typedef typename Unsigned<WIDTH>::Type Codes;

  __shared__ float values[256];
  values[threadIdx.x] = to_do.values[threadIdx.x];
  __syncthreads();

  // The first chunk may begin before the tensor, so that stores are aligned.
  int64_t before = ((uintptr_t)to_do.target & (STORE_BYTES - 1)) / sizeof(Bits);
  int64_t elements = to_do.elements;
  int64_t warps = (int64_t)gridDim.x * (THREADS / LANES);
  int64_t warp = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
  bool several = to_do.several != 0;
  float scale = to_do.scales == nullptr || several ? 1 : scale_at(to_do, 0);
  Bits* target = reinterpret_cast<Bits*>(to_do.target);

#pragma unroll 1
  for (int64_t tile = warp * STEP * STEPS - before; tile < elements; tile += warps * STEP * STEPS) {
    Place place;
    int64_t placed = -1;
    int64_t at = tile + threadIdx.x % LANES * WIDTH;
#pragma unroll 1
    for (int step = 0; step < STEPS && at < elements; step++, at += STEP) {
      bool whole = at >= 0 && at + WIDTH <= elements;
      Codes codes = whole ? codes_at<Codes>(to_do.source + at) : 0;
      if (several) {
        int64_t first = at < 0 ? 0 : at;
        place.go_to(to_do, first, placed < 0 ? 0 : first - placed);
        placed = first;
        scale = place.scale;
      }
      if (whole && (!several || place.run >= WIDTH)) {
        uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
          uint32_t bits = To::of(values[(uint32_t)(codes >> (8 * i)) & 0xff] * scale);
          constexpr int BYTES = sizeof(Bits);
          words[i * BYTES / 4] |= bits << (8 * (i * BYTES % 4));
        }
        *reinterpret_cast<uint4*>(target + at) = make_uint4(words[0], words[1], words[2], words[3]);
        continue;
      }
      // At an edge of the tensor, or with several scales.
      int64_t end = at + WIDTH < elements ? at + WIDTH : elements;
      Place one;
#pragma unroll 1
      for (int64_t i = at < 0 ? 0 : at; i < end; i++) {
        if (several) {
          one.go_to(to_do, i, i > at && i > 0 ? 1 : 0);
          scale = one.scale;
        }
        target[i] = To::of(values[to_do.source[i]] * scale);
      }
    }
  }
}

// ENTRY is convert_to_TO, and TO bf16, f16 or f32: each is a module of its own, since the driver takes 40 ms to
// compile one.
extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(const __grid_constant__ Conversion to_do) {
  convert_all<TO>(to_do);
}
