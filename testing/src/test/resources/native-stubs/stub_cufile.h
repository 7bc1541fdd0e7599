/* The types of cufile.h that the stub needs, written out from the API reference. */
#ifndef GANTRY_STUB_CUFILE_H
#define GANTRY_STUB_CUFILE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stub_faults.h"

/* The version as 1000 x major + 10 x minor, as cuFileGetVersion returns it. */
#ifndef STUB_VERSION
#define STUB_VERSION 1150
#endif

enum {
  DRIVER_NOT_INITIALIZED = 5001,
  DRIVER_UNSUPPORTED_LIMIT = 5003,
  IO_NOT_SUPPORTED = 5008,
  INVALID_MAPPING_RANGE = 5017,
  INVALID_FILE_TYPE = 5018,
  INVALID_FILE_OPEN_FLAG = 5019,
  INVALID_VALUE = 5022,
  MEMORY_ALREADY_REGISTERED = 5023,
  MEMORY_NOT_REGISTERED = 5024,
  DRIVER_ALREADY_OPEN = 5026,
  HANDLE_ALREADY_REGISTERED = 5028
};

typedef struct {
  int err;
  int cu_err;
} CUfileError_t;

typedef void *CUfileHandle_t;

typedef struct {
  int type;
  union {
    int fd;
    void *handle;
  } handle;
  const void *fs_ops;
} CUfileDescr_t;

typedef struct {
  struct {
    unsigned int major_version, minor_version;
    size_t poll_thresh_size, max_direct_io_size;
    unsigned int dstatusflags, dcontrolflags;
  } nvfs;
  unsigned int fflags, max_device_cache_size, per_buffer_cache_size, max_device_pinned_mem_size;
  unsigned int max_batch_io_size, max_batch_io_timeout_msecs;
} CUfileDrvProps_t;

struct figures {
  long handles, buffers, registered_bytes, bytes_read, bytes_written, unaligned;
  long wrong_base; /* I/O that named an address inside a registered buffer as its base */
  long disorder;   /* releases in an order that libcufile may punish */
  long posix;      /* I/O that went through the CPU */
  long late_threads; /* threads that had read or written, and had not ended when the driver was closed */
};

extern pthread_mutex_t stub_lock;
extern struct figures stub_figures;

/* CUFileBoolConfigParameter_t */
enum {
  ALLOW_COMPAT_MODE = 1,
  FORCE_COMPAT_MODE = 2,
  POSIX_IO_MODE = 12,
  GDS_FALLBACK_IO = 13,
  FLAGS = STUB_VERSION >= 1190 ? 14 : 12
};
extern bool stub_flags[FLAGS];

/* CUFileSizeTConfigParameter_t */
enum { IO_BATCHSIZE = 9, SIZES = 12 };
extern size_t stub_sizes[SIZES];

/* CUfileDriverStatusFlags_t */
enum { NVME = 4, TARGETS = 14 };

/* Returns whether peer-to-peer DMA is enabled for a kind of storage; it always is before libcufile 1.16. */
int stub_peer_to_peer(int target);

void stub_forget_peer_to_peer(void);

/* Returns the bits of dcontrolflags for I/O through the CPU by other means than compatibility mode. */
unsigned stub_fallbacks(void);

CUfileError_t stub_status(int code);

int stub_open(void);

/* Returns whether the driver is or was open. */
int stub_was_open(void);

/* Reads cufile.json. */
void stub_read_config(void);

/* Counts the call, and returns the fault that a test has set for it, if any. */
#define CALLED(function)                                          \
  do {                                                            \
    struct stub_fault fault;                                      \
    if (stub_called(function, &fault)) {                          \
      return (CUfileError_t){(int)fault.code, (int)fault.detail}; \
    }                                                             \
  } while (0)

#endif
