// SPDX-License-Identifier: Apache-2.0
//
// The kernel that crops, resizes and mirrors a picture. `CudaPictures` launches it, with a block for each row of the result.
// It computes as `Resampler` of the formats does: along rows first, then along columns, rounding to 8 bits in between.
//
// make-ptx.sh compiles it into PTX that the jar has and the driver compiles.
#include <stdint.h>

constexpr int THREADS = 256;
constexpr int CHANNELS = 3;
constexpr int FRACTION_BITS = 22;

// CudaPictures lays it out likewise.
struct Picture {
  const uint8_t* pixels;
  uint64_t pitch;
  uint8_t* target;
  // For each column of the result the first pixel that counts, then how many count; the same for each row; then the
  // weights of each column, and those of each row.
  const int32_t* table;
  int32_t width;
  int32_t height;
  // The weights that each column and each row has room for.
  int32_t column_weights;
  int32_t row_weights;
  int32_t mirrored;
};

__device__ __forceinline__ int32_t clip(int32_t sum) {
  return min(255, max(0, sum >> FRACTION_BITS));
}

extern "C" __global__ void __launch_bounds__(THREADS) resample(const Picture picture) {
  constexpr int32_t half = 1 << (FRACTION_BITS - 1);
  int32_t y = blockIdx.x;
  const int32_t* columns = picture.table;
  const int32_t* rows = columns + 2 * picture.width;
  const int32_t* all_weights = rows + 2 * picture.height;
  const int32_t* row_weights =
      all_weights + picture.width * picture.column_weights + y * picture.row_weights;
  const uint8_t* top = picture.pixels + rows[y] * picture.pitch;
  int32_t row_count = rows[picture.height + y];
  uint8_t* target = picture.target + (uint64_t)y * picture.width * CHANNELS;
  for (int32_t i = threadIdx.x; i < picture.width * CHANNELS; i += THREADS) {
    int32_t x = i / CHANNELS;
    int32_t channel = i - x * CHANNELS;
    const int32_t* weights = all_weights + x * picture.column_weights;
    const uint8_t* left = top + columns[x] * CHANNELS + channel;
    int32_t count = columns[picture.width + x];
    int32_t sum = half;
    for (int32_t row = 0; row < row_count; row++) {
      int32_t line = half;
      for (int32_t column = 0; column < count; column++) {
        line += left[column * CHANNELS] * weights[column];
      }
      sum += clip(line) * row_weights[row];
      left += picture.pitch;
    }
    int32_t to = picture.mirrored ? picture.width - 1 - x : x;
    target[to * CHANNELS + channel] = (uint8_t)clip(sum);
  }
}
