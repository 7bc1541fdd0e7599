/* The stream API: requests that the stub of libcuda runs when a thread waits for their stream. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "stub_cufile.h"

#ifndef STUB_OLD
enum { FIXED_BUF_OFFSET = 1, FIXED_FILE_OFFSET = 2, FIXED_FILE_SIZE = 4, ALL_FLAGS = 15 };

struct registered {
  void *stream;
  unsigned flags;
  long pending;
  struct registered *next;
};

/* What is not fixed is read from its pointer when the stream comes to the request. */
struct request {
  CUfileHandle_t handle;
  void *base;
  size_t size, *size_p;
  off_t file, *file_p, at, *at_p;
  ssize_t *done;
  int writes;
  unsigned fixed;
  void *stream;
};

static struct registered *registered;

static struct registered *find(void *stream) {
  struct registered *one = registered;
  while (one && one->stream != stream) {
    one = one->next;
  }
  return one;
}

EXPORT CUfileError_t cuFileStreamRegister(void *stream, unsigned flags) {
  CALLED("cuFileStreamRegister");
  if (!stub_open()) {
    return stub_status(DRIVER_NOT_INITIALIZED);
  }
  pthread_mutex_lock(&stub_lock);
  int code = find(stream) || flags & ~ALL_FLAGS ? INVALID_VALUE : 0;
  if (code == 0) {
    struct registered *one = malloc(sizeof *one);
    *one = (struct registered){stream, flags, 0, registered};
    registered = one;
    stub_figures.streams++;
  }
  pthread_mutex_unlock(&stub_lock);
  return stub_status(code);
}

EXPORT CUfileError_t cuFileStreamDeregister(void *stream) {
  CALLED("cuFileStreamDeregister");
  pthread_mutex_lock(&stub_lock);
  struct registered **at = &registered;
  while (*at && (*at)->stream != stream) {
    at = &(*at)->next;
  }
  struct registered *one = *at;
  if (one) {
    *at = one->next;
    stub_figures.disorder += one->pending > 0;
    stub_figures.streams--;
    free(one);
  }
  pthread_mutex_unlock(&stub_lock);
  return stub_status(one ? 0 : INVALID_VALUE);
}

static void run(void *argument) {
  struct request *one = argument;
  size_t size = one->fixed & FIXED_FILE_SIZE ? one->size : *one->size_p;
  off_t file = one->fixed & FIXED_FILE_OFFSET ? one->file : *one->file_p;
  off_t at = one->fixed & FIXED_BUF_OFFSET ? one->at : *one->at_p;
  struct stub_fault fault;
  *one->done = stub_called(one->writes ? "stream write" : "stream read", &fault)
                   ? fault.code
                   : stub_transfer(one->handle, one->base, size, file, at, one->writes);
  pthread_mutex_lock(&stub_lock);
  struct registered *stream = find(one->stream);
  if (stream) {
    stream->pending--;
  }
  pthread_mutex_unlock(&stub_lock);
  free(one);
}

static CUfileError_t submit(struct request request, void *stream) {
  if (!stub_open()) {
    return stub_status(DRIVER_NOT_INITIALIZED);
  }
  if (!request.handle || !request.base) {
    return stub_status(INVALID_VALUE);
  }
  void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  int (*launch)(void *, void (*)(void *), void *) = NULL;
  int (*synchronize)(void *) = NULL;
  if (cuda) {
    *(void **)&launch = dlsym(cuda, "cuLaunchHostFunc");
    *(void **)&synchronize = dlsym(cuda, "cuStreamSynchronize");
    dlclose(cuda);
  }
  if (!launch) {
    return stub_status(ASYNC_NOT_SUPPORTED);
  }
  pthread_mutex_lock(&stub_lock);
  struct request *one = malloc(sizeof *one);
  *one = request;
  one->stream = stream;
  struct registered *known = find(stream);
  one->fixed = known ? known->flags : 0;
  one->size = *one->size_p;
  one->file = *one->file_p;
  one->at = *one->at_p;
  if (known) {
    known->pending++;
  }
  pthread_mutex_unlock(&stub_lock);
  *one->done = 0;
  if (!known) {
    /* So does the real one: it waits within the call, and does the work there. */
    int waited = synchronize(stream);
    run(one);
    return (CUfileError_t){waited ? CUDA_DRIVER_ERROR : 0, waited};
  }
  int code = launch(stream, run, one);
  return (CUfileError_t){code ? CUDA_DRIVER_ERROR : 0, code};
}

EXPORT CUfileError_t cuFileReadAsync(
    CUfileHandle_t handle, void *base, size_t *size, off_t *file, off_t *at, ssize_t *done,
    void *stream) {
  CALLED("cuFileReadAsync");
  return submit((struct request){.handle = handle, .base = base, .size_p = size, .file_p = file,
                                 .at_p = at, .done = done}, stream);
}

EXPORT CUfileError_t cuFileWriteAsync(
    CUfileHandle_t handle, void *base, size_t *size, off_t *file, off_t *at, ssize_t *done,
    void *stream) {
  CALLED("cuFileWriteAsync");
  return submit((struct request){.handle = handle, .base = base, .size_p = size, .file_p = file,
                                 .at_p = at, .done = done, .writes = 1}, stream);
}
#endif
