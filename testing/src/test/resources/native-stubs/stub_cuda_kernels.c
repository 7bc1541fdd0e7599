/* Modules and kernels. The stub runs the PTX of formulas. From other PTX it reads only the names of entries, and it
 * has C versions of the kernels of gather.cu, copies.cu, normalize.cu and resample.cu. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stub_cuda_ptx.h"
#include "stub_cuda_streams.h"

enum { CUDA_ERROR_INVALID_PTX = 218, CUDA_ERROR_NOT_FOUND = 500 };

struct module {
  char *image;
  struct program *program;
  CUcontext context;
  int live;
};

struct function {
  struct module *module;
  char name[64];
};

static long live_modules;

long stub_kernel_count(const char *what) {
  return strcmp(what, "modules") == 0 ? live_modules : -1;
}

EXPORT CUresult cuModuleLoadData(struct module **module, const void *image) {
  ENTER("cuModuleLoadData", NEEDS_CONTEXT);
  const char *text = image;
  if (!strstr(text, ".version ") || !strstr(text, ".target ") || !strstr(text, ".entry ")) {
    return CUDA_ERROR_INVALID_PTX;
  }
  struct program *program = NULL;
  if (strstr(text, "Made by FormulaPtx") && !(program = stub_parse_ptx(text))) {
    return CUDA_ERROR_INVALID_PTX;
  }
  struct module *one = calloc(1, sizeof *one);
  one->image = strdup(text);
  one->program = program;
  one->context = stub_context();
  one->live = 1;
  live_modules++;
  *module = one;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(struct module *module) {
  ENTER("cuModuleUnload", NEEDS_CONTEXT);
  if (!module || !module->live || module->context != stub_context()) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  module->live = 0;
  if (module->program) {
    stub_free_ptx(module->program);
  }
  live_modules--;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(
    struct function **function, struct module *module, const char *name) {
  ENTER("cuModuleGetFunction", NEEDS_CONTEXT);
  if (!module || !module->live || module->context != stub_context()) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  struct function *one = calloc(1, sizeof *one);
  char entry[96];
  snprintf(one->name, sizeof one->name, "%s", name);
  snprintf(entry, sizeof entry, ".entry %s(", one->name);
  if (!strstr(module->image, entry)) {
    free(one);
    return CUDA_ERROR_NOT_FOUND;
  }
  one->module = module;
  *function = one;
  return CUDA_SUCCESS;
}

/* The struct of gather.cu. */
struct piece {
  const uint8_t *source;
  uint8_t *target;
  uint64_t bytes;
};

struct gathering {
  const struct piece *pieces;
  uint64_t count;
};

/* The struct of copies.cu. */
enum { MAX_PIECES = 170 };

struct copies {
  uint64_t count;
  struct piece pieces[MAX_PIECES];
};

/* The types of normalize.cu. */
enum type { T_BOOL, T_U8, T_I8, T_I16, T_U16, T_F16, T_BF16, T_I32, T_U32, T_F32, T_F64, T_I64, T_U64 };
enum { STAGE_BYTES = 16 << 10, MOST_CHANNELS = 256, FORMULA_BYTES = 256 };

struct sample_piece {
  const uint8_t *source;
  uint8_t *target;
  uint32_t first, units;
};

struct normalization {
  const struct sample_piece *pieces;
  uint64_t count, pixels;
  uint32_t channels, channels_last, from, to;
  float scale[MOST_CHANNELS], shift[MOST_CHANNELS];
};

/* The struct of resample.cu. */
struct picture {
  const uint8_t *pixels;
  uint64_t pitch;
  uint8_t *target;
  const int32_t *table;
  int32_t width, height, column_weights, row_weights, mirrored;
};

struct launch {
  union {
    uint8_t formula[FORMULA_BYTES];
    struct gathering gathering;
    struct copies copies;
    struct normalization normalization;
    struct picture picture;
  };
  unsigned int blocks;
  struct function *function;
};

static float as_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t as_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* The float unit adds half a unit in the last place, and rounds to even. */
static uint32_t to_f16(float value) {
  uint32_t sign = as_bits(value) >> 16 & 0x8000;
  float magnitude = as_float(as_bits(value) & 0x7fffffff);
  if (magnitude >= 65520.0f) {
    return sign | 0x7c00;
  }
  if (magnitude < 0x1p-14f) {
    return sign | (as_bits(magnitude + 0.5f) - as_bits(0.5f));
  }
  uint32_t bits = as_bits(magnitude);
  bits += 0xfff + (bits >> 13 & 1);
  return sign | ((bits >> 13) - (112 << 10));
}

static float from_f16(uint32_t half) {
  uint32_t sign = (half & 0x8000) << 16;
  uint32_t rest = half & 0x7fff;
  if (rest >= 0x7c00) {
    return as_float(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  }
  float magnitude = rest < 0x400 ? (float)rest * 0x1p-24f : as_float((rest << 13) + (112u << 23));
  return sign ? -magnitude : magnitude;
}

static uint32_t bits_of(enum type to, float value) {
  uint32_t bits = as_bits(value);
  switch (to) {
    case T_F32:
      return value != value ? 0x7fc00000 : bits;
    case T_F16:
      return value != value ? 0x7e00 : to_f16(value);
    default:
      return value != value ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  }
}

static int is_device(const void *start, uint64_t bytes) {
  return bytes == 0 || stub_block((uintptr_t)start, bytes, DEVICE) != NULL;
}

static void run_formula(void *argument) {
  struct launch *one = argument;
  if (!one->function->module->live ||
      !stub_run_ptx(one->function->module->program, one->formula, one->blocks)) {
    stub_sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  free(one);
}

/* Returns whether the device can access all of these bytes of host memory, which may span adjacent registrations. */
static int is_reachable(const void *start, uint64_t bytes) {
  uintptr_t end = (uintptr_t)start + bytes;
  for (uintptr_t at = (uintptr_t)start; at < end;) {
    struct block *block = stub_block(at, 1, PINNED | REGISTERED);
    if (!block) {
      return 0;
    }
    at = block->start + block->bytes;
  }
  return 1;
}

/* Copies the pieces if the device can access all their bytes. */
static void copy_pieces(struct launch *one, const struct piece *pieces, uint64_t count) {
  int reachable = one->function->module->live;
  for (uint64_t i = 0; reachable && i < count; i++) {
    const struct piece *piece = &pieces[i];
    reachable = is_reachable(piece->source, piece->bytes) && is_device(piece->target, piece->bytes);
    if (reachable) {
      memcpy(piece->target, piece->source, piece->bytes);
    }
  }
  if (!reachable) {
    stub_sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  free(one);
}

static void gather(void *argument) {
  struct launch *one = argument;
  const struct gathering *what = &one->gathering;
  int reachable = is_reachable(what->pieces, what->count * sizeof *what->pieces);
  copy_pieces(one, what->pieces, reachable ? what->count : 0);
  stub_sticky = reachable ? stub_sticky : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void copy_all(void *argument) {
  struct launch *one = argument;
  one->copies.count = one->copies.count <= MAX_PIECES ? one->copies.count : 0;
  copy_pieces(one, one->copies.pieces, one->copies.count);
}

static uint64_t bytes_of(enum type type) {
  return type <= T_I8 ? 1 : type <= T_BF16 ? 2 : type <= T_F32 ? 4 : 8;
}

static float value_at(const uint8_t *at, enum type type) {
  uint64_t bits = 0;
  double wide;
  memcpy(&bits, at, bytes_of(type));
  memcpy(&wide, &bits, sizeof wide);
  switch (type) {
    case T_BOOL: return bits != 0;
    case T_U8: case T_U16: case T_U32: case T_U64: return (float)bits;
    case T_I8: return (int8_t)bits;
    case T_I16: return (int16_t)bits;
    case T_F16: return from_f16((uint32_t)bits);
    case T_BF16: return as_float((uint32_t)bits << 16);
    case T_I32: return (float)(int32_t)bits;
    case T_F32: return as_float((uint32_t)bits);
    case T_F64: return (float)wide;
    default: return (float)(int64_t)bits;
  }
}

static void normalize_piece(const struct normalization *what, const struct sample_piece *piece) {
  uint64_t element = bytes_of(what->from);
  uint64_t beside = what->channels_last ? what->channels : 1;
  for (uint64_t i = 0; i < piece->units * beside; i++) {
    uint64_t index = what->channels_last
                         ? i % beside * what->pixels + piece->first + i / beside
                         : piece->first + i;
    uint64_t channel = index / what->pixels;
    /* The two steps avoid a fused multiply-add. */
    volatile float product = value_at(piece->source + i * element, what->from) * what->scale[channel];
    uint32_t bits = bits_of(what->to, product + what->shift[channel]);
    memcpy(piece->target + index * bytes_of(what->to), &bits, bytes_of(what->to));
  }
}

static void normalize(void *argument) {
  struct launch *one = argument;
  const struct normalization *what = &one->normalization;
  int reachable = one->function->module->live && what->channels <= MOST_CHANNELS &&
                  is_reachable(what->pieces, what->count * sizeof *what->pieces);
  for (uint64_t i = 0; reachable && i < what->count; i++) {
    const struct sample_piece *piece = &what->pieces[i];
    uint64_t beside = what->channels_last ? what->channels : 1;
    uint64_t bytes = bytes_of(what->from) * piece->units * beside;
    uint64_t results = bytes_of(what->to) * what->pixels * what->channels;
    reachable = bytes <= STAGE_BYTES && (uintptr_t)piece->target % bytes_of(what->to) == 0 &&
                piece->first + piece->units <= what->pixels * what->channels / beside &&
                (is_device(piece->source, bytes) || is_reachable(piece->source, bytes)) &&
                is_device(piece->target, results);
    if (reachable) {
      normalize_piece(what, piece);
    }
  }
  if (!reachable) {
    stub_sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  free(one);
}

static int32_t clip(int32_t sum) {
  int32_t value = sum >> 22;
  return value < 0 ? 0 : value > 255 ? 255 : value;
}

static void resample_pixel(const struct picture *what, int32_t x, int32_t y, int32_t channel) {
  const int32_t *rows = what->table + 2 * what->width;
  const int32_t *weights = rows + 2 * what->height + x * what->column_weights;
  const int32_t *row_weights =
      rows + 2 * what->height + what->width * what->column_weights + y * what->row_weights;
  int32_t sum = 1 << 21;
  for (int32_t row = 0; row < rows[what->height + y]; row++) {
    const uint8_t *from =
        what->pixels + (rows[y] + row) * what->pitch + what->table[x] * 3 + channel;
    int32_t line = 1 << 21;
    for (int32_t column = 0; column < what->table[what->width + x]; column++) {
      line += from[column * 3] * weights[column];
    }
    sum += clip(line) * row_weights[row];
  }
  int32_t to = what->mirrored ? what->width - 1 - x : x;
  what->target[((uint64_t)y * what->width + to) * 3 + channel] = (uint8_t)clip(sum);
}

/* Returns whether the device has all pixels of the decoded picture that the table uses. */
static int has_pixels(const struct picture *what) {
  const int32_t *rows = what->table + 2 * what->width;
  int has = 1;
  for (int32_t y = 0; has && y < what->height; y++) {
    int32_t count = rows[what->height + y];
    has = rows[y] >= 0 && count > 0 && count <= what->row_weights &&
          is_device(what->pixels + rows[y] * what->pitch, count * what->pitch);
  }
  for (int32_t x = 0; has && x < what->width; x++) {
    int32_t count = what->table[what->width + x];
    has = what->table[x] >= 0 && count > 0 && count <= what->column_weights &&
          3 * (uint64_t)(what->table[x] + count) <= what->pitch;
  }
  return has;
}

static void resample(void *argument) {
  struct launch *one = argument;
  const struct picture *what = &one->picture;
  uint64_t ints = (uint64_t)what->width * (2 + what->column_weights) +
                  (uint64_t)what->height * (2 + what->row_weights);
  int reachable = one->function->module->live && (int32_t)one->blocks == what->height &&
                  is_device(what->table, ints * sizeof *what->table) && has_pixels(what) &&
                  is_device(what->target, 3 * (uint64_t)what->width * what->height);
  for (int32_t y = 0; reachable && y < what->height; y++) {
    for (int32_t i = 0; i < 3 * what->width; i++) {
      resample_pixel(what, i / 3, y, i % 3);
    }
  }
  if (!reachable) {
    stub_sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  free(one);
}

EXPORT CUresult cuLaunchKernel(
    struct function *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
    unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
    CUstream handle, void **parameters, void **extra) {
  ENTER("cuLaunchKernel", NEEDS_CONTEXT);
  struct stream *stream = stub_stream(handle);
  if (!function || !function->module->live || !stream) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x != 256 || block_y != 1 ||
      block_z != 1 || shared_bytes != 0 || !parameters || extra) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  int gathers = strcmp(function->name, "gather") == 0;
  int copies = strcmp(function->name, "copies") == 0;
  int normalizes = strcmp(function->name, "normalize") == 0;
  int resamples = strcmp(function->name, "resample") == 0;
  struct launch *one = calloc(1, sizeof *one);
  memcpy(one->formula, parameters[0],
         gathers ? sizeof one->gathering
         : copies ? sizeof one->copies
         : normalizes ? sizeof one->normalization
         : resamples ? sizeof one->picture : FORMULA_BYTES);
  one->blocks = grid_x;
  one->function = function;
  stub_submit(
      stream,
      (struct operation){
          .what = CALL,
          .call = gathers ? gather : copies ? copy_all : normalizes ? normalize : resamples ? resample : run_formula,
          .argument = one});
  return CUDA_SUCCESS;
}
