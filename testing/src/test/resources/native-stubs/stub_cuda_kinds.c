/* Device memory of other calls than cuMemAlloc: managed memory, pools, and mappings by cuMemMap. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stub_cuda.h"

enum { GRANULARITY_BYTES = 2 << 20 };

/* An allocation of cuMemCreate. It is a file in memory, whose descriptor is the shareable handle. */
struct allocation {
  size_t bytes;
  long references;
  int file;
  int gpu; /* the host's number of the GPU, which another process may see as another device */
};

static long mapped_by_others;

#define FILE_NAME "gantry-stub-device-"

static int default_pool;

static char *whole_pages(size_t bytes) {
  char *room = mmap(NULL, bytes + GRANULARITY_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    return NULL;
  }
  size_t before = -(uintptr_t)room % GRANULARITY_BYTES;
  if (before > 0) {
    munmap(room, before);
  }
  munmap(room + before + bytes, GRANULARITY_BYTES - before);
  return room + before;
}

static CUresult allocate(CUdeviceptr *pointer, size_t bytes, int managed, void *pool) {
  char *mapping = bytes == 0 ? NULL : whole_pages(bytes);
  if (!mapping) {
    return bytes == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
  }
  struct block *block = stub_add((uintptr_t)mapping, bytes, DEVICE);
  block->mapping = mapping;
  block->mapping_bytes = bytes;
  block->managed = managed;
  block->pool = pool;
  *pointer = block->start;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags) {
  (void)flags;
  ENTER("cuMemAllocManaged", NEEDS_CONTEXT);
  return allocate(pointer, bytes, 1, NULL);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  (void)stream;
  ENTER("cuMemAllocAsync", NEEDS_CONTEXT);
  return allocate(pointer, bytes, 0, &default_pool);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  (void)stream;
  ENTER("cuMemFreeAsync", NEEDS_CONTEXT);
  return stub_release(pointer, DEVICE, CUDA_ERROR_INVALID_VALUE);
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *bytes, const void *kind, int option) {
  (void)kind;
  (void)option;
  ENTER("cuMemGetAllocationGranularity", NEEDS_INIT);
  *bytes = GRANULARITY_BYTES;
  return CUDA_SUCCESS;
}

/* The fields of CUmemAllocationProp that the stub reads. */
struct kind_of_memory {
  int type;
  int handles;
  int location;
  int id;
};

EXPORT CUresult cuMemCreate(
    struct allocation **handle, size_t bytes, const struct kind_of_memory *kind,
    unsigned long long flags) {
  (void)flags;
  ENTER("cuMemCreate", NEEDS_INIT);
  int gpu = stub_gpu(kind->id);
  if (bytes == 0 || bytes % GRANULARITY_BYTES != 0 || gpu < 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  char name[64];
  snprintf(name, sizeof name, FILE_NAME "%d", gpu);
  int file = memfd_create(name, MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = malloc(sizeof **handle);
  **handle = (struct allocation){bytes, 1, file, gpu};
  return CUDA_SUCCESS;
}

static void give_up(struct allocation *one) {
  if (--one->references == 0) {
    close(one->file);
    free(one);
  }
}

enum { POSIX_DESCRIPTOR = 1 };

EXPORT CUresult cuMemExportToShareableHandle(
    void *descriptor, struct allocation *handle, int type, unsigned long long flags) {
  (void)flags;
  ENTER("cuMemExportToShareableHandle", NEEDS_INIT);
  if (type != POSIX_DESCRIPTOR) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *(int *)descriptor = fcntl(handle->file, F_DUPFD_CLOEXEC, 0);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemImportFromShareableHandle(
    struct allocation **handle, void *descriptor, int type) {
  ENTER("cuMemImportFromShareableHandle", NEEDS_INIT);
  struct stat state;
  int given = (int)(intptr_t)descriptor;
  if (type != POSIX_DESCRIPTOR || fstat(given, &state) != 0 || state.st_size == 0
      || state.st_size % GRANULARITY_BYTES != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  char link[32];
  char name[64] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", given);
  char *gpu = readlink(link, name, sizeof name - 1) > 0 ? strstr(name, FILE_NAME) : NULL;
  if (!gpu) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *handle = malloc(sizeof **handle);
  **handle = (struct allocation){(size_t)state.st_size, 1, fcntl(given, F_DUPFD_CLOEXEC, 0),
                                 atoi(gpu + strlen(FILE_NAME))};
  return CUDA_SUCCESS;
}

/* Returns how often a device got access to memory of another GPU. */
long stub_mapped_by_others(void) {
  return mapped_by_others;
}

EXPORT CUresult cuMemRelease(struct allocation *handle) {
  ENTER("cuMemRelease", NEEDS_INIT);
  give_up(handle);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressReserve(
    CUdeviceptr *pointer, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags) {
  (void)alignment;
  (void)wish;
  (void)flags;
  ENTER("cuMemAddressReserve", NEEDS_INIT);
  char *room = bytes == 0 ? NULL : whole_pages(bytes);
  *pointer = (uintptr_t)room;
  return room ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes) {
  ENTER("cuMemAddressFree", NEEDS_INIT);
  munmap((void *)(uintptr_t)pointer, bytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemMap(
    CUdeviceptr pointer, size_t bytes, size_t offset, struct allocation *handle,
    unsigned long long flags) {
  (void)flags;
  ENTER("cuMemMap", NEEDS_CONTEXT);
  if (offset + bytes > handle->bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  /* No access is allowed before cuMemSetAccess. */
  if (mmap((void *)(uintptr_t)pointer, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, handle->file,
           (off_t)offset) == MAP_FAILED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  handle->references++;
  stub_add(pointer, bytes, DEVICE)->mapped = handle;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
  ENTER("cuMemUnmap", NEEDS_CONTEXT);
  struct block *block = stub_block(pointer, bytes, DEVICE);
  if (!block || !block->mapped) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  struct allocation *mapped = block->mapped;
  CUresult result = stub_release(pointer, DEVICE, CUDA_ERROR_INVALID_VALUE);
  /* The address range stays reserved. */
  mmap((void *)(uintptr_t)pointer, bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  give_up(mapped);
  return result;
}

/* CUmemAccessDesc has the location's type and number, and flags: 1 to read, 3 to read and write. */
struct access {
  int type;
  int id;
  int flags;
};

EXPORT CUresult cuMemSetAccess(
    CUdeviceptr pointer, size_t bytes, const struct access *access, size_t count) {
  ENTER("cuMemSetAccess", NEEDS_INIT);
  struct block *block = stub_block(pointer, bytes, DEVICE);
  if (!block || !block->mapped || count != 1 || stub_gpu(access->id) < 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  /* The driver allows this for peers. */
  mapped_by_others += stub_gpu(access->id) != block->mapped->gpu;
  int protection = access->flags == 3 ? PROT_READ | PROT_WRITE : PROT_READ;
  return mprotect((void *)(uintptr_t)pointer, bytes, protection) == 0 ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemRetainAllocationHandle(struct allocation **handle, void *pointer) {
  ENTER("cuMemRetainAllocationHandle", NEEDS_INIT);
  struct block *block = stub_block((uintptr_t)pointer, 1, DEVICE);
  if (!block || !block->mapped) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  block->mapped->references++;
  *handle = block->mapped;
  return CUDA_SUCCESS;
}
