/* A libcufile.so.0 without a GPU. Reads and writes copy between the file and plain memory.
 *
 * The stub refuses the calls that libcufile refuses, and counts mistakes that may make libcufile hang: memory freed
 * while registered, a descriptor closed before its handle, a driver closed over live registrations.
 * STUB_VERSION is the version of libcufile that it models; a version lacks the functions of later ones. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "stub_cufile.h"

enum { PAGE = 4096 };

struct handle {
  int descriptor; /* the descriptor of the caller */
  int own;        /* the same file, opened again without O_DIRECT, so that it accepts any alignment */
  struct handle *next;
};

struct buffer {
  uintptr_t base;
  size_t bytes;
  struct buffer *next;
};

pthread_mutex_t stub_lock = PTHREAD_MUTEX_INITIALIZER;
struct figures stub_figures;

static long opened;
static struct handle *handles;
static struct buffer *buffers;
static long limit_bytes = -1;

/* These count the threads that have read or written since the driver was opened and have not ended. */
static pthread_once_t callers_once = PTHREAD_ONCE_INIT;
static pthread_key_t callers_key;
static long callers;
static intptr_t opening = 1;
static int p2p;
static int serves = 1;

static struct { size_t poll, direct, cache, pinned; int polls; } settings = {4, 16384, 131072,
                                                                            33554432, 0};

CUfileError_t stub_status(int code) { return (CUfileError_t){code, 0}; }

int stub_open(void) { return opened > 0; }

int stub_was_open(void) { return opened > 0 || opening > 1; }

/* Limits each read and write to so many bytes from now on; a negative number removes the limit. */
EXPORT void gantry_stub_limit(long bytes) { limit_bytes = bytes; }

__attribute__((constructor)) static void read_p2p(void) {
  p2p = stub_environment("GANTRY_STUB_CUFILE_DIRECT", 0) != 0;
}

/* Sets whether the driver reports from now on that it reads and writes NVMe disks past the CPU. */
EXPORT void gantry_stub_p2p(long there) { p2p = there != 0; }

static long version;

/* Sets the version that the stub reports from now on; 0 for its own. */
EXPORT void gantry_stub_version(long number) { version = number; }

static long features = -1;

/* Sets fflags of the properties from now on; a negative number lets the stub compute them. */
EXPORT void gantry_stub_features(long bits) { features = bits; }

/* Sets whether files can be read and written past the CPU, if the driver reports that it can. */
EXPORT void gantry_stub_serves(long all) { serves = all != 0; }

static int passes_cpu_by(void) {
  return p2p && serves && stub_peer_to_peer(NVME) && !stub_flags[FORCE_COMPAT_MODE];
}

EXPORT CUfileError_t cuFileDriverOpen(void) {
  CALLED("cuFileDriverOpen");
  if (!stub_open()) {
    stub_read_config();
  }
  if (!p2p && !stub_flags[ALLOW_COMPAT_MODE]) {
    return stub_status(DRIVER_NOT_INITIALIZED);
  }
  pthread_mutex_lock(&stub_lock);
  if (opened++ == 0) {
    limit_bytes = limit_bytes < 0 ? stub_environment("GANTRY_STUB_CUFILE_LIMIT", -1) : limit_bytes;
  }
  pthread_mutex_unlock(&stub_lock);
  return stub_status(0);
}

static CUfileError_t driver_close(void) {
  CALLED("cuFileDriverClose");
  pthread_mutex_lock(&stub_lock);
  int code = opened > 0 ? 0 : DRIVER_NOT_INITIALIZED;
  if (code == 0 && --opened == 0) {
    stub_figures.late_threads += callers;
    callers = 0;
    opening++;
    stub_figures.disorder += handles != NULL || buffers != NULL;
    stub_forget_peer_to_peer();
  }
  pthread_mutex_unlock(&stub_lock);
  return stub_status(code);
}

EXPORT CUfileError_t cuFileDriverClose(void) { return driver_close(); }

enum { NEW_FLAGS = STUB_VERSION >= 1160 };

/* From 1.16 on the bit has no meaning. */
static unsigned nvme_peer_to_peer(void) { return (unsigned)(NEW_FLAGS || p2p) << 11; }

EXPORT CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props) {
  CALLED("cuFileDriverGetProperties");
  if (!stub_open()) {
    return stub_status(DRIVER_NOT_INITIALIZED);
  }
  *props = (CUfileDrvProps_t){.nvfs = {.poll_thresh_size = settings.poll,
                                       .max_direct_io_size = settings.direct,
                                       .dstatusflags = 1u << NVME | 1u << 6 | nvme_peer_to_peer(),
                                       .dcontrolflags = (unsigned)stub_flags[ALLOW_COMPAT_MODE] << 1 |
                                                        (unsigned)settings.polls |
                                                        stub_fallbacks()},
                              .fflags = features >= 0 ? (unsigned)features
                                                      : 1u << 1 | (unsigned)(NEW_FLAGS && p2p) << 4,
                              .max_device_cache_size = (unsigned)settings.cache,
                              .per_buffer_cache_size = 1024,
                              .max_device_pinned_mem_size = (unsigned)settings.pinned,
                              .max_batch_io_size = (unsigned)stub_sizes[IO_BATCHSIZE],
                              .max_batch_io_timeout_msecs = 5};
  return stub_status(0);
}

/* Opens the driver if it is not open, as libcufile does. */
static CUfileError_t set(size_t *setting, size_t kib, size_t least, size_t most) {
  pthread_mutex_lock(&stub_lock);
  opened = opened > 0 ? opened : 1;
  pthread_mutex_unlock(&stub_lock);
  if (kib < least || kib > most || kib % 4 != 0) {
    return stub_status(DRIVER_UNSUPPORTED_LIMIT);
  }
  *setting = kib;
  return stub_status(0);
}

EXPORT CUfileError_t cuFileDriverSetPollMode(bool poll, size_t kib) {
  CALLED("cuFileDriverSetPollMode");
  settings.polls = poll;
  return set(&settings.poll, kib, 4, SIZE_MAX);
}

EXPORT CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t kib) {
  CALLED("cuFileDriverSetMaxDirectIOSize");
  return set(&settings.direct, kib, 64, 16384);
}

EXPORT CUfileError_t cuFileDriverSetMaxCacheSize(size_t kib) {
  CALLED("cuFileDriverSetMaxCacheSize");
  return set(&settings.cache, kib, 0, 1ul << 28);
}

EXPORT CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t kib) {
  CALLED("cuFileDriverSetMaxPinnedMemSize");
  return set(&settings.pinned, kib, 64, 1ul << 28);
}

EXPORT CUfileError_t cuFileHandleRegister(CUfileHandle_t *out, CUfileDescr_t *description) {
  CALLED("cuFileHandleRegister");
  if (!stub_open()) {
    return stub_status(DRIVER_NOT_INITIALIZED);
  }
  int flags = fcntl(description->handle.fd, F_GETFL);
  if (description->type != 1 || description->fs_ops || flags < 0) {
    return stub_status(INVALID_VALUE);
  }
  if (flags & (O_APPEND | O_NONBLOCK)) {
    return stub_status(INVALID_FILE_OPEN_FLAG);
  }
  if (!passes_cpu_by() && !stub_flags[ALLOW_COMPAT_MODE]) {
    return stub_status(IO_NOT_SUPPORTED);
  }
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", description->handle.fd);
  int own = open(path, (flags & O_ACCMODE) | O_CLOEXEC);
  if (own < 0) {
    return stub_status(INVALID_FILE_TYPE);
  }
  pthread_mutex_lock(&stub_lock);
  for (struct handle *one = handles; one; one = one->next) {
    if (one->descriptor == description->handle.fd) {
      pthread_mutex_unlock(&stub_lock);
      close(own);
      return stub_status(HANDLE_ALREADY_REGISTERED);
    }
  }
  struct handle *one = malloc(sizeof *one);
  *one = (struct handle){description->handle.fd, own, handles};
  handles = one;
  *out = one;
  stub_figures.handles++;
  pthread_mutex_unlock(&stub_lock);
  return stub_status(0);
}

EXPORT void cuFileHandleDeregister(CUfileHandle_t handle) {
  struct stub_fault ignored;
  stub_called("cuFileHandleDeregister", &ignored);
  pthread_mutex_lock(&stub_lock);
  struct handle **at = &handles;
  while (*at && *at != handle) {
    at = &(*at)->next;
  }
  if (!*at) {
    stub_figures.disorder++;
  } else {
    struct handle *one = *at;
    *at = one->next;
    stub_figures.disorder += fcntl(one->descriptor, F_GETFD) < 0;
    stub_figures.handles--;
    close(one->own);
    free(one);
  }
  pthread_mutex_unlock(&stub_lock);
}

/* Reports registrations to the stub of libcuda, if it is in this process, so that it notices memory that is freed too early. */
static void tell_cuda(const void *base, size_t bytes) {
  void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (cuda) {
    void (*registered)(uintptr_t, size_t) = NULL;
    *(void **)&registered = dlsym(cuda, "gantry_stub_registered");
    if (registered) {
      registered((uintptr_t)base, bytes);
    }
    dlclose(cuda);
  }
}

EXPORT CUfileError_t cuFileBufRegister(const void *base, size_t bytes, int flags) {
  CALLED("cuFileBufRegister");
  if (!stub_open()) {
    return stub_status(DRIVER_NOT_INITIALIZED);
  }
  if (!base || bytes == 0 || flags != 0) {
    return stub_status(INVALID_VALUE);
  }
  pthread_mutex_lock(&stub_lock);
  for (struct buffer *one = buffers; one; one = one->next) {
    if (one->base == (uintptr_t)base) {
      pthread_mutex_unlock(&stub_lock);
      return stub_status(MEMORY_ALREADY_REGISTERED);
    }
  }
  struct buffer *one = malloc(sizeof *one);
  *one = (struct buffer){(uintptr_t)base, bytes, buffers};
  buffers = one;
  stub_figures.buffers++;
  stub_figures.registered_bytes += (long)bytes;
  pthread_mutex_unlock(&stub_lock);
  tell_cuda(base, bytes);
  return stub_status(0);
}

EXPORT CUfileError_t cuFileBufDeregister(const void *base) {
  CALLED("cuFileBufDeregister");
  pthread_mutex_lock(&stub_lock);
  struct buffer **at = &buffers;
  while (*at && (*at)->base != (uintptr_t)base) {
    at = &(*at)->next;
  }
  int code = *at ? 0 : MEMORY_NOT_REGISTERED;
  if (*at) {
    struct buffer *one = *at;
    *at = one->next;
    stub_figures.buffers--;
    stub_figures.registered_bytes -= (long)one->bytes;
    free(one);
  }
  pthread_mutex_unlock(&stub_lock);
  if (code == 0) {
    tell_cuda(base, 0);
  }
  return stub_status(code);
}

/* Returns the descriptor to use, or a negative result. */
static long admit(
    CUfileHandle_t handle, uintptr_t base, size_t size, off_t file, off_t at, int vectored) {
  struct handle *known = handles;
  while (known && known != handle) {
    known = known->next;
  }
  if (!stub_open() || !known) {
    errno = EBADF; /* libcufile has returned -1 here */
    return -1;
  }
  if (fcntl(known->descriptor, F_GETFD) < 0) {
    stub_figures.disorder++;
  }
  for (struct buffer *one = buffers; one; one = one->next) {
    if (one->base == base && (size_t)at + size > one->bytes) {
      return -INVALID_MAPPING_RANGE;
    }
    /* The registration of the buffer is not used if the request names another address inside the buffer as its base. A
     * request of several pieces has no field for the base. */
    stub_figures.wrong_base += !vectored && base > one->base && base < one->base + one->bytes;
  }
  int aligned = ((uintptr_t)file | size | base | (uintptr_t)at) % PAGE == 0;
  stub_figures.unaligned += !aligned;
  stub_figures.posix += !passes_cpu_by();
  return known->own;
}

static void thread_ends(void *value) {
  pthread_mutex_lock(&stub_lock);
  callers -= (intptr_t)value == opening;
  pthread_mutex_unlock(&stub_lock);
}

static void make_key(void) { pthread_key_create(&callers_key, thread_ends); }

static void count_caller(void) {
  pthread_once(&callers_once, make_key);
  if ((intptr_t)pthread_getspecific(callers_key) != opening) {
    pthread_setspecific(callers_key, (void *)opening);
    callers++;
  }
}

/* Reads or writes synchronously. Returns a count, -1 with errno, or a negative code. */
static ssize_t move_bytes(
    CUfileHandle_t handle, void *base, size_t size, off_t file, off_t at, int writes) {
  pthread_mutex_lock(&stub_lock);
  count_caller();
  long descriptor = admit(handle, (uintptr_t)base, size, file, at, 0);
  pthread_mutex_unlock(&stub_lock);
  if (descriptor < 0) {
    return descriptor;
  }
  size_t now = limit_bytes >= 0 && (size_t)limit_bytes < size ? (size_t)limit_bytes : size;
  char *memory = (char *)base + at;
  ssize_t count = writes ? pwrite((int)descriptor, memory, now, file)
                         : pread((int)descriptor, memory, now, file);
  if (count > 0) {
    __atomic_add_fetch(writes ? &stub_figures.bytes_written : &stub_figures.bytes_read, count,
                       __ATOMIC_RELAXED);
  }
  return count;
}

static ssize_t transfer(
    const char *function, CUfileHandle_t handle, void *base, size_t size, off_t file, off_t at,
    int writes) {
  struct stub_fault fault;
  if (stub_called(function, &fault)) {
    errno = (int)fault.detail;
    return (ssize_t)fault.code;
  }
  return move_bytes(handle, base, size, file, at, writes);
}

EXPORT ssize_t cuFileRead(
    CUfileHandle_t handle, void *base, size_t size, off_t file_offset, off_t base_offset) {
  return transfer("cuFileRead", handle, base, size, file_offset, base_offset, 0);
}

EXPORT ssize_t cuFileWrite(
    CUfileHandle_t handle, const void *base, size_t size, off_t file_offset, off_t base_offset) {
  return transfer("cuFileWrite", handle, (void *)base, size, file_offset, base_offset, 1);
}

#if STUB_VERSION >= 1190
typedef struct {
  void *base;
  size_t len;
} CUfileIOVec_t;

enum { MAX_PIECES = 1024 };

static ssize_t move_pieces(
    const char *function, CUfileHandle_t handle, const CUfileIOVec_t *pieces, size_t count,
    off_t file, unsigned flags, int writes) {
  struct stub_fault fault;
  if (stub_called(function, &fault)) {
    errno = (int)fault.detail;
    return (ssize_t)fault.code;
  }
  if (!pieces || count == 0 || count > MAX_PIECES || flags != 0) {
    return -INVALID_VALUE;
  }
  struct iovec now[MAX_PIECES];
  size_t left = limit_bytes >= 0 ? (size_t)limit_bytes : SIZE_MAX;
  long descriptor = -1;
  pthread_mutex_lock(&stub_lock);
  count_caller();
  off_t at = file;
  for (size_t i = 0; i < count; i++) {
    descriptor = admit(handle, (uintptr_t)pieces[i].base, pieces[i].len, at, 0, 1);
    at += (off_t)pieces[i].len;
    now[i].iov_base = pieces[i].base;
    now[i].iov_len = pieces[i].len < left ? pieces[i].len : left;
    left -= now[i].iov_len;
    if (descriptor < 0) {
      break;
    }
  }
  pthread_mutex_unlock(&stub_lock);
  if (descriptor < 0) {
    return descriptor;
  }
  ssize_t moved = writes ? pwritev((int)descriptor, now, (int)count, file)
                         : preadv((int)descriptor, now, (int)count, file);
  if (moved > 0) {
    __atomic_add_fetch(writes ? &stub_figures.bytes_written : &stub_figures.bytes_read, moved,
                       __ATOMIC_RELAXED);
  }
  return moved;
}

EXPORT ssize_t cuFileReadv(
    CUfileHandle_t handle, const CUfileIOVec_t *pieces, size_t count, off_t file_offset,
    unsigned flags) {
  return move_pieces("cuFileReadv", handle, pieces, count, file_offset, flags, 0);
}

EXPORT ssize_t cuFileWritev(
    CUfileHandle_t handle, const CUfileIOVec_t *pieces, size_t count, off_t file_offset,
    unsigned flags) {
  return move_pieces("cuFileWritev", handle, pieces, count, file_offset, flags, 1);
}
#endif

long gantry_stub_count(const char *what) {
  return strcmp(what, "opened") == 0             ? opened
         : strcmp(what, "handles") == 0          ? stub_figures.handles
         : strcmp(what, "buffers") == 0          ? stub_figures.buffers
         : strcmp(what, "registered bytes") == 0 ? stub_figures.registered_bytes
         : strcmp(what, "bytes read") == 0       ? stub_figures.bytes_read
         : strcmp(what, "bytes written") == 0    ? stub_figures.bytes_written
         : strcmp(what, "unaligned") == 0        ? stub_figures.unaligned
         : strcmp(what, "wrong base") == 0       ? stub_figures.wrong_base
         : strcmp(what, "disorder") == 0         ? stub_figures.disorder
         : strcmp(what, "posix") == 0            ? stub_figures.posix
         : strcmp(what, "late threads") == 0     ? stub_figures.late_threads
                                                 : -1;
}

#if STUB_VERSION >= 1140
EXPORT CUfileError_t cuFileDriverClose_v2(void) { return driver_close(); }

EXPORT long cuFileUseCount(void) {
  struct stub_fault ignored;
  stub_called("cuFileUseCount", &ignored);
  return opened;
}

EXPORT CUfileError_t cuFileGetVersion(int *to) {
  CALLED("cuFileGetVersion");
  *to = (int)(version ? version : stub_environment("GANTRY_STUB_CUFILE_VERSION", STUB_VERSION));
  return stub_status(0);
}
#endif
