// SPDX-License-Identifier: Apache-2.0
// What a transformer's layer does to rows beside its products: one launch each, instead of one for each operation.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

// The numbers of kinds, types and threads are the same in CudaRows.java.
struct Parameter {
  const void *x;
  const void *a;
  const void *b;
  void *out;
  int64_t rows;
  int32_t width;
  int32_t kind;
  int32_t type;
  int32_t first;
  int32_t second;
  float number;
};

template <typename T> __device__ float wide(T value);
template <> __device__ float wide(float value) { return value; }
template <> __device__ float wide(__half value) { return __half2float(value); }
template <> __device__ float wide(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename T> __device__ T narrow(float value);
template <> __device__ float narrow(float value) { return value; }
template <> __device__ __half narrow(float value) { return __float2half_rn(value); }
template <> __device__ __nv_bfloat16 narrow(float value) { return __float2bfloat16_rn(value); }

// A value as memory would hold it.
template <typename T> __device__ float rounded(float value) { return wide(narrow<T>(value)); }

// RMSNorm of a row by a block: x / sqrt(mean(x²) + number) · a; `first`: a is one less than the scale.
template <typename T> __device__ void norm(const Parameter &p) {
  __shared__ float sums[8];
  const T *x = static_cast<const T *>(p.x) + static_cast<int64_t>(blockIdx.x) * p.width;
  const T *a = static_cast<const T *>(p.a);
  T *out = static_cast<T *>(p.out) + static_cast<int64_t>(blockIdx.x) * p.width;
  float sum = 0;
  for (int i = threadIdx.x; i < p.width; i += blockDim.x) {
    float value = wide(x[i]);
    sum += value * value;
  }
  for (int step = 16; step > 0; step /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, step);
  }
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = sum;
  }
  __syncthreads();
  sum = 0;
  for (int i = 0; i < blockDim.x / 32; i++) {
    sum += sums[i];
  }
  float factor = 1.0f / sqrtf(sum / p.width + p.number);
  for (int i = threadIdx.x; i < p.width; i += blockDim.x) {
    float scale = wide(a[i]);
    float value = wide(x[i]) * factor;
    out[i] = narrow<T>(p.first ? value * (1.0f + scale) : rounded<T>(value) * scale);
  }
}

// Turns the first `first` pairs' halves of each row by the cosines `a` and sines `b` of its token; `second`: rows of a token.
// `number` is how many rows of cosines there are.
template <typename T> __device__ void turn(const Parameter &p) {
  const T *x = static_cast<const T *>(p.x);
  T *out = static_cast<T *>(p.out);
  int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= p.rows * p.width) {
    return;
  }
  int64_t row = index / p.width;
  int at = static_cast<int>(index % p.width);
  if (at >= 2 * p.first) {
    out[index] = x[index];
    return;
  }
  int64_t angle = row / p.second % static_cast<int64_t>(p.number) * p.first + at % p.first;
  float cosine = wide(static_cast<const T *>(p.a)[angle]);
  float sine = wide(static_cast<const T *>(p.b)[angle]);
  float own = rounded<T>(wide(x[index]) * cosine);
  float other = at < p.first ? -rounded<T>(wide(x[index + p.first]) * sine)
                             : rounded<T>(wide(x[index - p.first]) * sine);
  out[index] = narrow<T>(own + other);
}

// silu(x) · a, element by element.
template <typename T> __device__ void gate(const Parameter &p) {
  int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < p.rows * p.width) {
    float value = wide(static_cast<const T *>(p.x)[index]);
    float gated = rounded<T>(value / (1.0f + expf(-value)));
    static_cast<T *>(p.out)[index] = narrow<T>(gated * wide(static_cast<const T *>(p.a)[index]));
  }
}

template <typename T> __device__ void run(const Parameter &p) {
  if (p.kind == 0) {
    norm<T>(p);
  } else if (p.kind == 1) {
    turn<T>(p);
  } else {
    gate<T>(p);
  }
}

extern "C" __global__ void __launch_bounds__(256) rows(const __grid_constant__ Parameter p) {
  if (p.type == 0) {
    run<float>(p);
  } else if (p.type == 1) {
    run<__half>(p);
  } else {
    run<__nv_bfloat16>(p);
  }
}
