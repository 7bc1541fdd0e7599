/* Device memory, pinned memory, and the attributes of pointers. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stub_cuda.h"

enum { RUBBISH = 0xDB, MOST_RUBBISH_BYTES = 64 << 20, ALIGNMENT_BYTES = 512, PAGE_BYTES = 2 << 20 };

static struct block *blocks;
static unsigned long long last_id;
static long peak_device_bytes;
static long freed_while_pending;
static long freed_while_registered;

/* Memory that is registered with libcufile. It must be deregistered before it is freed. */
static struct registration {
  uintptr_t start;
  size_t bytes;
  struct registration *next;
} *registrations;

/* The stub of libcufile calls this after it has registered (bytes > 0) or deregistered (0) a buffer. */
EXPORT void gantry_stub_registered(uintptr_t start, size_t bytes) {
  pthread_mutex_lock(&stub_lock);
  if (bytes > 0) {
    struct registration *one = malloc(sizeof *one);
    *one = (struct registration){start, bytes, registrations};
    registrations = one;
  } else {
    for (struct registration **at = &registrations; *at; at = &(*at)->next) {
      if ((*at)->start == start) {
        struct registration *gone = *at;
        *at = gone->next;
        free(gone);
        break;
      }
    }
  }
  pthread_mutex_unlock(&stub_lock);
}

static int overlaps(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

struct block *stub_block(uintptr_t start, size_t bytes, int kinds) {
  for (struct block *one = blocks; one; one = one->next) {
    if ((one->kind & kinds) && start >= one->start && start + bytes <= one->start + one->bytes) {
      return one;
    }
  }
  return NULL;
}

static long total(int kinds, CUdevice device) {
  long bytes = 0;
  for (struct block *one = blocks; one; one = one->next) {
    bytes += (one->kind & kinds) && (device < 0 || one->device == device) ? (long)one->bytes : 0;
  }
  return bytes;
}

struct block *stub_add(uintptr_t start, size_t bytes, enum kind kind) {
  struct block *one = calloc(1, sizeof *one);
  one->start = start;
  one->bytes = bytes;
  one->kind = kind;
  one->device = stub_device();
  one->id = ++last_id;
  one->next = blocks;
  blocks = one;
  return one;
}

static char *pages(void *where, size_t bytes) {
  return mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* The end of the last mapping of whole pages that still exists. */
static char *end;

/* Maps whole pages of a device at a multiple of their size, adjacent to earlier ones if possible. */
static char *device_pages(size_t bytes) {
  char *mapping = end ? pages(end, bytes) : MAP_FAILED;
  if (mapping != MAP_FAILED && (uintptr_t)mapping % PAGE_BYTES != 0) {
    munmap(mapping, bytes);
    mapping = MAP_FAILED;
  }
  if (mapping == MAP_FAILED) {
    char *room = pages(NULL, bytes + PAGE_BYTES);
    if (room == MAP_FAILED) {
      return room;
    }
    size_t before = -(uintptr_t)room % PAGE_BYTES;
    mapping = room + before;
    if (before > 0) {
      munmap(room, before);
    }
    munmap(mapping + bytes, PAGE_BYTES - before);
  }
  end = mapping + bytes;
  return mapping;
}

static CUresult map(size_t bytes, size_t offset, enum kind kind, struct block **block) {
  int whole = kind == DEVICE && bytes % PAGE_BYTES == 0;
  offset = whole ? 0 : offset;
  size_t mapping_bytes = bytes + offset;
  char *mapping = whole ? device_pages(bytes) : pages(NULL, mapping_bytes);
  if (mapping == MAP_FAILED) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memset(mapping, RUBBISH, bytes < MOST_RUBBISH_BYTES ? mapping_bytes : MOST_RUBBISH_BYTES);
  *block = stub_add((uintptr_t)mapping + offset, bytes, kind);
  (*block)->mapping = mapping;
  (*block)->mapping_bytes = mapping_bytes;
  return CUDA_SUCCESS;
}

CUresult stub_release(uintptr_t start, enum kind kind, CUresult refusal) {
  for (struct block **at = &blocks; *at; at = &(*at)->next) {
    struct block *one = *at;
    if (one->start == start && one->kind == kind) {
      freed_while_pending += stub_finish_range(start, one->bytes);
      for (struct registration *known = registrations; known; known = known->next) {
        freed_while_registered += overlaps(start, one->bytes, known->start, known->bytes);
      }
      *at = one->next;
      if (one->mapping) {
        /* The next allocation gets these addresses, as with the driver. */
        if ((char *)one->mapping + one->mapping_bytes == end) {
          end = (char *)one->mapping;
        }
        munmap(one->mapping, one->mapping_bytes);
      }
      free(one);
      return CUDA_SUCCESS;
    }
  }
  return refusal;
}

static size_t capacity(void) {
  return (size_t)stub_environment("GANTRY_STUB_CUDA_TOTAL", 1L << 30);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  ENTER("cuMemAlloc", NEEDS_CONTEXT);
  if (bytes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (bytes > capacity() - (size_t)total(DEVICE, stub_device())) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  struct block *block;
  CUresult result = map(bytes, ALIGNMENT_BYTES, DEVICE, &block);
  if (result == CUDA_SUCCESS) {
    *pointer = block->start;
    long now = total(DEVICE, -1);
    peak_device_bytes = now > peak_device_bytes ? now : peak_device_bytes;
  }
  return result;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  ENTER("cuMemFree", NEEDS_CONTEXT);
  return pointer == 0 ? CUDA_SUCCESS : stub_release(pointer, DEVICE, CUDA_ERROR_INVALID_VALUE);
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
  ENTER("cuMemGetInfo", NEEDS_CONTEXT);
  *total_bytes = capacity();
  *free_bytes = capacity() - (size_t)total(DEVICE, stub_device());
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer) {
  ENTER("cuMemGetAddressRange", NEEDS_CONTEXT);
  struct block *block = stub_block(pointer, 1, DEVICE);
  if (!block) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *base = block->start;
  *bytes = block->bytes;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
  ENTER("cuMemHostAlloc", NEEDS_CONTEXT);
  if (bytes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  struct block *block;
  CUresult result = map(bytes, 0, PINNED, &block);
  if (result == CUDA_SUCCESS) {
    block->flags = flags;
    *pointer = (void *)block->start;
  }
  return result;
}

EXPORT CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}

EXPORT CUresult cuMemFreeHost(void *pointer) {
  ENTER("cuMemFreeHost", NEEDS_CONTEXT);
  return stub_release((uintptr_t)pointer, PINNED, CUDA_ERROR_INVALID_VALUE);
}

EXPORT CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags) {
  ENTER("cuMemHostRegister", NEEDS_CONTEXT);
  if (bytes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (struct block *one = blocks; one; one = one->next) {
    if (overlaps((uintptr_t)pointer, bytes, one->start, one->bytes)) {
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
  }
  stub_add((uintptr_t)pointer, bytes, REGISTERED)->flags = flags;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostUnregister(void *pointer) {
  ENTER("cuMemHostUnregister", NEEDS_CONTEXT);
  return stub_release((uintptr_t)pointer, REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(
    CUdeviceptr *device, void *pointer, unsigned int flags) {
  (void)flags;
  ENTER("cuMemHostGetDevicePointer", NEEDS_CONTEXT);
  if (!stub_block((uintptr_t)pointer, 1, PINNED | REGISTERED)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *device = (uintptr_t)pointer;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetFlags(unsigned int *flags, void *pointer) {
  ENTER("cuMemHostGetFlags", NEEDS_CONTEXT);
  struct block *block = stub_block((uintptr_t)pointer, 1, PINNED | REGISTERED);
  if (!block) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *flags = block->flags;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr pointer) {
  ENTER("cuPointerGetAttribute", NEEDS_INIT);
  struct block *block = stub_block(pointer, 1, DEVICE | PINNED | REGISTERED);
  if (!block) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  switch (attribute) {
    case 1: /* CONTEXT */
      *(CUcontext *)data = stub_primary(block->device);
      return CUDA_SUCCESS;
    case 2: /* MEMORY_TYPE: CU_MEMORYTYPE_HOST or CU_MEMORYTYPE_DEVICE */
      *(unsigned int *)data = block->kind == DEVICE ? 2 : 1;
      return CUDA_SUCCESS;
    case 3: /* DEVICE_POINTER */
      *(CUdeviceptr *)data = pointer;
      return CUDA_SUCCESS;
    case 4: /* HOST_POINTER */
      *(void **)data = (void *)(uintptr_t)pointer;
      return block->kind == DEVICE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case 6: /* SYNC_MEMOPS */
      *(int *)data = block->sync_memops;
      return CUDA_SUCCESS;
    case 7: /* BUFFER_ID */
      *(unsigned long long *)data = block->id;
      return CUDA_SUCCESS;
    case 8: /* IS_MANAGED */
      *(int *)data = block->managed;
      return CUDA_SUCCESS;
    case 9: /* DEVICE_ORDINAL */
      *(int *)data = block->device;
      return CUDA_SUCCESS;
    case 11: /* RANGE_START_ADDR */
      *(CUdeviceptr *)data = block->start;
      return CUDA_SUCCESS;
    case 12: /* RANGE_SIZE */
      *(size_t *)data = block->bytes;
      return CUDA_SUCCESS;
    case 13: /* MAPPED */
      *(int *)data = 1;
      return CUDA_SUCCESS;
    case 17: /* MEMPOOL_HANDLE */
      *(void **)data = block->pool;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

EXPORT CUresult cuPointerGetAttributes(
    unsigned int count, int *attributes, void **data, CUdeviceptr pointer) {
  for (unsigned int i = 0; i < count; i++) {
    CUresult result = cuPointerGetAttribute(data[i], attributes[i], pointer);
    if (result != CUDA_SUCCESS) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr pointer) {
  ENTER("cuPointerSetAttribute", NEEDS_INIT);
  struct block *block = stub_block(pointer, 1, DEVICE);
  if (!block || attribute != 6) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  block->sync_memops = *(const int *)value;
  return CUDA_SUCCESS;
}

long stub_memory_count(const char *what) {
  return strcmp(what, "device bytes") == 0             ? total(DEVICE, -1)
         : strcmp(what, "pinned bytes") == 0           ? total(PINNED, -1)
         : strcmp(what, "registered bytes") == 0       ? total(REGISTERED, -1)
         : strcmp(what, "peak device bytes") == 0      ? peak_device_bytes
         : strcmp(what, "mapped by others") == 0       ? stub_mapped_by_others()
         : strcmp(what, "freed while pending") == 0    ? freed_while_pending
         : strcmp(what, "freed while registered") == 0 ? freed_while_registered
                                                       : -1;
}
