/* The functions that older versions lack: settings (libcufile 1.14), the BAR1 window's size and counts (1.15),
 * switches of peer-to-peer DMA (1.16), bounce buffers of the GPU and the PCIe tree (1.17), and more counts (1.19). */
#include <stdio.h>
#include <string.h>

#include "stub_cufile.h"

size_t stub_sizes[SIZES] = {0, 128, 0, 1024, 0, 16384, 131072, 1024, 33554432, 128, 4, 5};

bool stub_flags[FLAGS] = {[ALLOW_COMPAT_MODE] = true, [4] = true, [6] = true};

unsigned stub_fallbacks(void) {
#if STUB_VERSION >= 1190
  return (unsigned)stub_flags[POSIX_IO_MODE] << 2 | (unsigned)stub_flags[GDS_FALLBACK_IO] << 4;
#else
  return 0;
#endif
}

#if STUB_VERSION >= 1160
enum { P2PDMA = 1 };

static int peer_to_peer[TARGETS];

int stub_peer_to_peer(int target) { return peer_to_peer[target]; }

void stub_forget_peer_to_peer(void) { memset(peer_to_peer, 0, sizeof peer_to_peer); }

/* libcufile 1.17 has refused all other flags, and has changed nothing without a flag. */
EXPORT CUfileError_t cuFileDriverSetP2PFlags(unsigned int target, unsigned int flags) {
  CALLED("cuFileDriverSetP2PFlags");
  if (target >= TARGETS || flags & ~(unsigned)P2PDMA) {
    return stub_status(INVALID_VALUE);
  }
  peer_to_peer[target] |= (int)flags;
  return stub_status(0);
}

EXPORT CUfileError_t cuFileDriverGetP2PFlags(unsigned int target, unsigned int *flags) {
  CALLED("cuFileDriverGetP2PFlags");
  if (target >= TARGETS || !flags) {
    return stub_status(INVALID_VALUE);
  }
  *flags = (unsigned)peer_to_peer[target];
  return stub_status(0);
}

#if STUB_VERSION >= 1170
enum { MAX_SLABS = 16 };

static size_t gpu_kib[MAX_SLABS], gpu_count[MAX_SLABS];
static int gpu_kinds;

/* Keeps the array, and returns it to callers that give its length, as libcufile 1.17 does. */
EXPORT CUfileError_t cuFileSetParameterGpuBounceBufferSlabArray(
    const size_t *kib, const size_t *count, int kinds) {
  CALLED("cuFileSetParameterGpuBounceBufferSlabArray");
  if (!kib || !count || kinds <= 0 || kinds > MAX_SLABS) {
    return stub_status(INVALID_VALUE);
  }
  if (stub_open()) {
    return stub_status(DRIVER_ALREADY_OPEN);
  }
  memcpy(gpu_kib, kib, (size_t)kinds * sizeof *kib);
  memcpy(gpu_count, count, (size_t)kinds * sizeof *count);
  gpu_kinds = kinds;
  return stub_status(0);
}

EXPORT CUfileError_t cuFileGetParameterGpuBounceBufferSlabArray(
    size_t *kib, size_t *count, int kinds) {
  CALLED("cuFileGetParameterGpuBounceBufferSlabArray");
  if (!kib || !count || kinds <= 0 || kinds != gpu_kinds) {
    return stub_status(INVALID_VALUE);
  }
  memcpy(kib, gpu_kib, (size_t)kinds * sizeof *kib);
  memcpy(count, gpu_count, (size_t)kinds * sizeof *count);
  return stub_status(0);
}

/* Resets the switches of peer-to-peer DMA, as libcufile 1.17 does. */
EXPORT CUfileError_t cuFileExportPCIeTopology(const char *path) {
  CALLED("cuFileExportPCIeTopology");
  FILE *file = path && *path ? fopen(path, "w") : NULL;
  if (!file) {
    return stub_status(INVALID_VALUE);
  }
  fputs("// Topology file for cuFile.\nnull", file);
  fclose(file);
  stub_forget_peer_to_peer();
  return stub_status(0);
}
#endif
#else
int stub_peer_to_peer(int target) { return target >= 0; }

void stub_forget_peer_to_peer(void) {}
#endif

#if STUB_VERSION >= 1140
enum { TEXTS = STUB_VERSION >= 1190 ? 4 : 3, TEXT_BYTES = 256, POOL_SLABS = 3 };

static char texts[TEXTS][TEXT_BYTES] = {"WARN"};
static size_t pool_kib[POOL_SLABS] = {4, 1024, 16384}, pool_count[POOL_SLABS] = {128, 64, 64};

/* Before the first driver, libcufile has refused to return an array that was not set. */
static bool pool_set;

static int refusal_of(unsigned int parameter, unsigned int known, int sets) {
  return parameter >= known ? INVALID_VALUE : sets && stub_open() ? DRIVER_ALREADY_OPEN : 0;
}

static int refusal(unsigned int parameter, int sets) {
  return refusal_of(parameter, FLAGS, sets);
}

EXPORT CUfileError_t cuFileSetParameterBool(unsigned int parameter, bool value) {
  CALLED("cuFileSetParameterBool");
  int code = refusal(parameter, 1);
  if (code == 0) {
    stub_flags[parameter] = value;
  }
  return stub_status(code);
}

EXPORT CUfileError_t cuFileGetParameterBool(unsigned int parameter, bool *value) {
  CALLED("cuFileGetParameterBool");
  int code = refusal(parameter, 0);
  if (code == 0) {
    *value = stub_flags[parameter];
  }
  return stub_status(code);
}

EXPORT CUfileError_t cuFileSetParameterSizeT(unsigned int parameter, size_t value) {
  CALLED("cuFileSetParameterSizeT");
  int code = refusal_of(parameter, SIZES, 1);
  if (code == 0) {
    stub_sizes[parameter] = value;
  }
  return stub_status(code);
}

EXPORT CUfileError_t cuFileGetParameterSizeT(unsigned int parameter, size_t *value) {
  CALLED("cuFileGetParameterSizeT");
  int code = refusal_of(parameter, SIZES, 0);
  if (code == 0) {
    *value = stub_sizes[parameter];
  }
  return stub_status(code);
}

EXPORT CUfileError_t cuFileGetParameterMinMaxValue(
    unsigned int parameter, size_t *least, size_t *most) {
  CALLED("cuFileGetParameterMinMaxValue");
  *least = 1;
  *most = parameter == IO_BATCHSIZE ? 256 : SIZE_MAX;
  /* libcufile has no range for the level of statistics. */
  return stub_status(parameter == 0 || parameter >= SIZES ? INVALID_VALUE : 0);
}

EXPORT CUfileError_t cuFileSetParameterString(unsigned int parameter, const char *value) {
  CALLED("cuFileSetParameterString");
  int code = refusal_of(parameter, TEXTS, 1);
  if (code == 0) {
    snprintf(texts[parameter], TEXT_BYTES, "%s", value);
  }
  return stub_status(code);
}

EXPORT CUfileError_t cuFileGetParameterString(unsigned int parameter, char *value, int room) {
  CALLED("cuFileGetParameterString");
  int code = refusal_of(parameter, TEXTS, 0);
  if (code == 0 && (int)strlen(texts[parameter]) >= room) {
    code = INVALID_VALUE;
  }
  if (code == 0) {
    snprintf(value, (size_t)room, "%s", texts[parameter]);
  }
  return stub_status(code);
}

EXPORT CUfileError_t cuFileSetParameterPosixPoolSlabArray(
    const size_t *kib, const size_t *count, int kinds) {
  CALLED("cuFileSetParameterPosixPoolSlabArray");
  int code = kinds != POOL_SLABS ? INVALID_VALUE : stub_open() ? DRIVER_ALREADY_OPEN : 0;
  if (code == 0) {
    memcpy(pool_kib, kib, sizeof pool_kib);
    memcpy(pool_count, count, sizeof pool_count);
    pool_set = true;
  }
  return stub_status(code);
}

EXPORT CUfileError_t cuFileGetParameterPosixPoolSlabArray(size_t *kib, size_t *count, int kinds) {
  CALLED("cuFileGetParameterPosixPoolSlabArray");
  if (kinds != POOL_SLABS || !(pool_set || stub_was_open())) {
    return stub_status(INVALID_VALUE);
  }
  memcpy(kib, pool_kib, sizeof pool_kib);
  memcpy(count, pool_count, sizeof pool_count);
  return stub_status(0);
}

static int stats_level;
static bool stats_run;

EXPORT CUfileError_t cuFileSetStatsLevel(int level) {
  CALLED("cuFileSetStatsLevel");
  if (level < 0 || level > 3) {
    return stub_status(INVALID_VALUE);
  }
  stats_level = level;
  return stub_status(0);
}

EXPORT CUfileError_t cuFileGetStatsLevel(int *level) {
  CALLED("cuFileGetStatsLevel");
  *level = stats_level;
  return stub_status(0);
}

static CUfileError_t run_stats(bool run) {
  stats_run = stub_open() && run;
  return stub_status(stub_open() ? 0 : DRIVER_NOT_INITIALIZED);
}

EXPORT CUfileError_t cuFileStatsStart(void) {
  CALLED("cuFileStatsStart");
  return run_stats(true);
}

EXPORT CUfileError_t cuFileStatsStop(void) {
  CALLED("cuFileStatsStop");
  return run_stats(false);
}

EXPORT CUfileError_t cuFileStatsReset(void) {
  CALLED("cuFileStatsReset");
  return stub_status(stub_open() ? 0 : DRIVER_NOT_INITIALIZED);
}

/* Each word of the structs has its own position as its value, so that a wrong offset in a reader is noticed. */
enum { LEVEL_1_WORDS = STUB_VERSION >= 1190 ? 78 : 64 };

typedef struct {
  uint64_t words[LEVEL_1_WORDS];
} CUfileStatsLevel1_t;

typedef struct {
  CUfileStatsLevel1_t basic;
  uint64_t read_size_kb_hist[32], write_size_kb_hist[32];
} CUfileStatsLevel2_t;

typedef struct {
  char uuid[16];
  uint64_t words[29];
} CUfilePerGpuStats_t;

typedef struct {
  CUfileStatsLevel2_t detailed;
  uint32_t num_gpus;
  CUfilePerGpuStats_t per_gpu_stats[16];
} CUfileStatsLevel3_t;

static CUfileError_t stats(void *to, size_t bytes, int level) {
  uint64_t *words = to;
  for (size_t i = 0; i < bytes / sizeof *words; i++) {
    words[i] = i;
  }
  return stub_status(!stub_open() ? DRIVER_NOT_INITIALIZED
                     : level > stats_level || !stats_run ? INVALID_VALUE
                                                         : 0);
}

EXPORT CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *to) {
  CALLED("cuFileGetStatsL1");
  return stats(to, sizeof *to, 1);
}

EXPORT CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *to) {
  CALLED("cuFileGetStatsL2");
  return stats(to, sizeof *to, 2);
}

EXPORT CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *to) {
  CALLED("cuFileGetStatsL3");
  CUfileError_t status = stats(to, sizeof *to, 3);
  to->num_gpus = 2;
  return status;
}

EXPORT CUfileError_t cuFileGetBARSizeInKB(int gpu, size_t *kib) {
  CALLED("cuFileGetBARSizeInKB");
  *kib = gpu == 0 ? 262144 : 1024;
  return stub_status(gpu < 2 ? 0 : INVALID_VALUE);
}
#endif
