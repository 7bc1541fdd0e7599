/* Parameters (libcufile 1.14) and statistics (1.15). */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "stub_cufile.h"

bool stub_flags[FLAGS] = {[ALLOW_COMPAT_MODE] = true, [4] = true, [6] = true};

#ifndef STUB_OLD
enum { SIZES = 12, TEXTS = 3, TEXT_BYTES = 256 };

static size_t sizes[SIZES] = {0, 128, 4, 8192, 4, 16384, 131072, 1024, 33554432, 128, 4, 5};
static char texts[TEXTS][TEXT_BYTES] = {"ERROR", "", "/tmp"};

static int refusal(unsigned int parameter, unsigned int most, int sets) {
  return parameter >= most ? INVALID_VALUE : sets && stub_open() ? DRIVER_ALREADY_OPEN : 0;
}

#define SETTER(function, type, target, most)                \
  EXPORT CUfileError_t function(unsigned int p, type value) { \
    CALLED(#function);                                      \
    int code = refusal(p, most, 1);                         \
    if (code == 0) {                                        \
      target[p] = value;                                    \
    }                                                       \
    return stub_status(code);                               \
  }
#define GETTER(function, type, source, most)                 \
  EXPORT CUfileError_t function(unsigned int p, type *value) { \
    CALLED(#function);                                       \
    int code = refusal(p, most, 0);                          \
    if (code == 0) {                                         \
      *value = source[p];                                    \
    }                                                        \
    return stub_status(code);                                \
  }

SETTER(cuFileSetParameterSizeT, size_t, sizes, SIZES)
GETTER(cuFileGetParameterSizeT, size_t, sizes, SIZES)
SETTER(cuFileSetParameterBool, bool, stub_flags, FLAGS)
GETTER(cuFileGetParameterBool, bool, stub_flags, FLAGS)

EXPORT CUfileError_t cuFileSetParameterString(unsigned int p, const char *value) {
  CALLED("cuFileSetParameterString");
  int code = refusal(p, TEXTS, 1);
  if (code == 0) {
    snprintf(texts[p], TEXT_BYTES, "%s", value);
  }
  return stub_status(code);
}

EXPORT CUfileError_t cuFileGetParameterString(unsigned int p, char *value, int bytes) {
  CALLED("cuFileGetParameterString");
  int code = refusal(p, TEXTS, 0);
  if (code == 0) {
    snprintf(value, (size_t)bytes, "%s", texts[p]);
  }
  return stub_status(code);
}

EXPORT CUfileError_t cuFileGetParameterMinMaxValue(unsigned int p, size_t *least, size_t *most) {
  CALLED("cuFileGetParameterMinMaxValue");
  int code = refusal(p, SIZES, 0);
  if (code == 0) {
    *least = 1;
    *most = 1u << 20;
  }
  return stub_status(code);
}

EXPORT CUfileError_t cuFileSetParameterPosixPoolSlabArray(
    const size_t *kib, const size_t *counts, int length) {
  CALLED("cuFileSetParameterPosixPoolSlabArray");
  for (int i = 0; i < length; i++) {
    if (kib[i] == 0 || counts[i] == 0) {
      return stub_status(INVALID_VALUE);
    }
  }
  return stub_status(length > 0 ? refusal(0, SIZES, 1) : INVALID_VALUE);
}

EXPORT CUfileError_t cuFileGetBARSizeInKB(int gpu, size_t *kib) {
  CALLED("cuFileGetBARSizeInKB");
  *kib = gpu == 0 ? 262144 : 1024;
  return stub_status(gpu < 2 ? 0 : INVALID_VALUE);
}

typedef struct {
  uint64_t ok, err;
} counter;

typedef struct {
  counter read_ops, write_ops, hdl_register_ops, hdl_deregister_ops, buf_register_ops,
      buf_deregister_ops;
  uint64_t read_bytes, write_bytes, read_bw_bytes_per_sec, write_bw_bytes_per_sec, read_lat_avg_us,
      write_lat_avg_us, read_ops_per_sec, write_ops_per_sec, read_lat_sum_us, write_lat_sum_us;
  counter batch_submit_ops, batch_complete_ops, batch_setup_ops, batch_cancel_ops,
      batch_destroy_ops, batch_enqueued_ops, batch_posix_enqueued_ops, batch_processed_ops,
      batch_posix_processed_ops, batch_nvfs_submit_ops, batch_p2p_submit_ops, batch_aio_submit_ops,
      batch_iouring_submit_ops, batch_mixed_io_submit_ops, batch_total_submit_ops;
  uint64_t batch_read_bytes, batch_write_bytes, batch_read_bw_bytes, batch_write_bw_bytes,
      batch_submit_lat_avg_us, batch_completion_lat_avg_us, batch_submit_ops_per_sec,
      batch_complete_ops_per_sec, batch_submit_lat_sum_us, batch_completion_lat_sum_us,
      last_batch_read_bytes, last_batch_write_bytes;
} CUfileStatsLevel1_t;

typedef struct {
  CUfileStatsLevel1_t basic;
  uint64_t read_size_kb_hist[32], write_size_kb_hist[32];
} CUfileStatsLevel2_t;

typedef struct {
  char uuid[16];
  uint64_t read_bytes, read_bw_bytes_per_sec, read_utilization, read_duration_us, n_total_reads,
      n_p2p_reads, n_nvfs_reads, n_posix_reads, n_unaligned_reads, n_dr_reads, n_sparse_regions,
      n_inline_regions, n_reads_err;
  uint64_t writes_bytes, write_bw_bytes_per_sec, write_utilization, write_duration_us,
      n_total_writes, n_p2p_writes, n_nvfs_writes, n_posix_writes, n_unaligned_writes, n_dr_writes,
      n_writes_err;
  uint64_t n_mmap, n_mmap_ok, n_mmap_err, n_mmap_free, reg_bytes;
} CUfilePerGpuStats_t;

typedef struct {
  CUfileStatsLevel2_t detailed;
  uint32_t num_gpus;
  CUfilePerGpuStats_t per_gpu_stats[16];
} CUfileStatsLevel3_t;

static int level;

EXPORT CUfileError_t cuFileSetStatsLevel(int value) {
  CALLED("cuFileSetStatsLevel");
  if (value < 0 || value > 3) {
    return stub_status(INVALID_VALUE);
  }
  level = value;
  return stub_status(0);
}

EXPORT CUfileError_t cuFileGetStatsLevel(int *value) {
  CALLED("cuFileGetStatsLevel");
  *value = level;
  return stub_status(0);
}

#define STATS_CALL(function)                                     \
  EXPORT CUfileError_t function(void) {                          \
    CALLED(#function);                                           \
    return stub_status(stub_open() ? 0 : DRIVER_NOT_INITIALIZED); \
  }

STATS_CALL(cuFileStatsStart)
STATS_CALL(cuFileStatsStop)

EXPORT CUfileError_t cuFileStatsReset(void) {
  CALLED("cuFileStatsReset");
  stub_figures.bytes_read = 0;
  stub_figures.bytes_written = 0;
  stub_figures.unaligned = 0;
  return stub_status(stub_open() ? 0 : DRIVER_NOT_INITIALIZED);
}

static uint64_t calls(const char *function) { return (uint64_t)gantry_stub_calls(function); }

static int refusal_of(int wanted) {
  return !stub_open() ? DRIVER_NOT_INITIALIZED : level < wanted ? INVALID_VALUE : 0;
}

static void fill(CUfileStatsLevel1_t *stats) {
  stats->read_ops = (counter){calls("cuFileRead"), 0};
  stats->write_ops = (counter){calls("cuFileWrite"), 0};
  stats->hdl_register_ops = (counter){calls("cuFileHandleRegister"), 0};
  stats->hdl_deregister_ops = (counter){calls("cuFileHandleDeregister"), 0};
  stats->buf_register_ops = (counter){calls("cuFileBufRegister"), 0};
  stats->buf_deregister_ops = (counter){calls("cuFileBufDeregister"), 0};
  stats->read_bytes = (uint64_t)stub_figures.bytes_read;
  stats->write_bytes = (uint64_t)stub_figures.bytes_written;
}

EXPORT CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats) {
  CALLED("cuFileGetStatsL1");
  memset(stats, 0, sizeof *stats);
  fill(stats);
  return stub_status(refusal_of(1));
}

/* All reads count as of the third bucket: one is enough to see where the buckets lie. */
EXPORT CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *stats) {
  CALLED("cuFileGetStatsL2");
  memset(stats, 0, sizeof *stats);
  fill(&stats->basic);
  stats->read_size_kb_hist[2] = calls("cuFileRead");
  return stub_status(refusal_of(2));
}

/* Two GPUs, of which the second does all the work: one would not show how far they are apart. */
EXPORT CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *stats) {
  CALLED("cuFileGetStatsL3");
  memset(stats, 0, sizeof *stats);
  fill(&stats->detailed.basic);
  stats->num_gpus = 2;
  CUfilePerGpuStats_t *gpu = &stats->per_gpu_stats[1];
  memset(gpu->uuid, 0xAB, sizeof gpu->uuid);
  gpu->read_bytes = (uint64_t)stub_figures.bytes_read;
  gpu->n_total_reads = calls("cuFileRead");
  gpu->n_posix_reads = calls("cuFileRead");
  gpu->n_unaligned_reads = (uint64_t)stub_figures.unaligned;
  gpu->n_reads_err = 7;
  gpu->writes_bytes = (uint64_t)stub_figures.bytes_written;
  gpu->n_total_writes = calls("cuFileWrite");
  gpu->n_posix_writes = calls("cuFileWrite");
  gpu->n_writes_err = 9;
  gpu->reg_bytes = (uint64_t)stub_figures.registered_bytes;
  return stub_status(refusal_of(3));
}
#endif
