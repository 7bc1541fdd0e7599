/* A libcuda.so.1 without a GPU. "Device" memory is host memory, and streams run late on purpose.
 *
 * Work that is queued on a stream runs only when a thread waits for it or queries it, so that a
 * missing synchronisation gives wrong bytes on every run. Device memory is filled with arbitrary
 * bytes and has only the alignment that the driver guarantees. A call without a current context is
 * refused, as by the driver. */
#ifndef GANTRY_STUB_CUDA_H
#define GANTRY_STUB_CUDA_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "stub_faults.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct context *CUcontext;
typedef struct stream *CUstream;
typedef struct event *CUevent;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713
};

enum { MOST_DEVICES = 8 };

/* The lock of all of the state, which each call holds until it returns. */
extern pthread_mutex_t stub_lock;

static inline void stub_unlock(int *unused) {
  (void)unused;
  pthread_mutex_unlock(&stub_lock);
}

enum needs { NEEDS_NOTHING, NEEDS_INIT, NEEDS_CONTEXT };

/* Counts the call, and returns an error if the call cannot be made; holds the lock until the function returns. */
#define ENTER(function, needs)                                               \
  __attribute__((cleanup(stub_unlock))) int entered = 0;                     \
  pthread_mutex_lock(&stub_lock);                                            \
  (void)entered;                                                             \
  do {                                                                       \
    CUresult refusal = stub_enter(function, needs);                          \
    if (refusal != CUDA_SUCCESS) {                                           \
      return refusal;                                                        \
    }                                                                        \
  } while (0)

CUresult stub_enter(const char *function, enum needs needs);

/* Returns the current context's device; only after ENTER(..., NEEDS_CONTEXT). */
CUdevice stub_device(void);
CUcontext stub_context(void);
CUcontext stub_primary(CUdevice device);
CUdevice stub_device_of(CUcontext context);

/* Returns whether the device's context has access to the peer's memory. */
int stub_reaches(CUdevice device, CUdevice peer);
long stub_contexts(void);

/* Returns the host's number of a device, which is independent of the order in which this process sees the GPUs. */
int stub_gpu(CUdevice device);

/* Memory. */
enum kind { DEVICE = 1, PINNED = 2, REGISTERED = 4 };

struct block {
  uintptr_t start;
  size_t bytes;
  enum kind kind;
  CUdevice device;
  unsigned long long id;
  void *mapping;
  size_t mapping_bytes;
  unsigned int flags;
  int sync_memops;
  int managed;
  void *pool;                 /* the pool of the memory, or NULL */
  struct allocation *mapped;  /* the allocation that cuMemMap mapped here, or NULL */
  struct block *next;
};

/* Returns the live block of one of these kinds that holds all of these bytes, or NULL. */
struct block *stub_block(uintptr_t start, size_t bytes, int kinds);
struct block *stub_add(uintptr_t start, size_t bytes, enum kind kind);
CUresult stub_release(uintptr_t start, enum kind kind, CUresult refusal);
long stub_memory_count(const char *what);
long stub_mapped_by_others(void);

/* Streams. */
long stub_stream_count(const char *what);

long stub_kernel_count(const char *what);

/* Runs the queued operations that access these bytes, and returns their number. */
long stub_finish_range(uintptr_t start, size_t bytes);

#endif
