/* Copies and fills, synchronous or on a stream. */
#define _GNU_SOURCE
#include <string.h>

#include "stub_cuda_streams.h"

static long pageable_copies, to_device_bytes, to_host_bytes, peer_bytes, peer_bytes_by_host;

long stub_copy_count(const char *what) {
  return strcmp(what, "pageable copies") == 0   ? pageable_copies
         : strcmp(what, "to device bytes") == 0 ? to_device_bytes
         : strcmp(what, "to host bytes") == 0   ? to_host_bytes
         : strcmp(what, "peer bytes") == 0      ? peer_bytes
         : strcmp(what, "peer bytes by host") == 0 ? peer_bytes_by_host
                                                   : -1;
}

enum direction { TO_DEVICE, TO_HOST, ON_DEVICE, ANY };

/* Returns whether the bytes begin in a device allocation and end beyond it, even in the next allocation. */
static int overruns(const void *start, size_t bytes) {
  return stub_block((uintptr_t)start, 1, DEVICE) && !stub_block((uintptr_t)start, bytes, DEVICE);
}

static CUresult copy(
    struct operation one, enum direction direction, CUstream handle, int later) {
  one.what = COPY;
  size_t to_span = stub_span(&one, one.to_pitch);
  size_t from_span = stub_span(&one, one.from_pitch);
  int to_device = stub_block((uintptr_t)one.to, to_span, DEVICE) != NULL;
  int from_device = stub_block((uintptr_t)one.from, from_span, DEVICE) != NULL;
  if (((direction == TO_DEVICE || direction == ON_DEVICE) && !to_device) ||
      ((direction == TO_HOST || direction == ON_DEVICE) && !from_device) ||
      overruns(one.to, to_span) || overruns(one.from, from_span)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  struct stream *stream = stub_stream(handle);
  if (!stream) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  one.to_id = stub_id(one.to, to_span);
  one.from_id = stub_id(one.from, from_span);
  to_device_bytes += to_device && !from_device ? (long)(one.width * one.rows) : 0;
  to_host_bytes += from_device && !to_device ? (long)(one.width * one.rows) : 0;
  pageable_copies += later && (one.to_id == 0 || one.from_id == 0);
  stub_submit(stream, one);
  if (!later) {
    stub_run_until(stream, stream->submitted);
    return stub_sticky;
  }
  return CUDA_SUCCESS;
}

static struct operation line(uintptr_t to, uintptr_t from, size_t bytes) {
  return (struct operation){
      .to = (char *)to, .from = (const char *)from, .width = bytes, .rows = 1};
}

#define PLAIN_COPY(function, symbol, to_type, from_type, direction)                        \
  EXPORT CUresult symbol(to_type to, from_type from, size_t bytes) {                       \
    ENTER(function, NEEDS_CONTEXT);                                                        \
    return copy(line((uintptr_t)to, (uintptr_t)from, bytes), direction, NULL, 0);          \
  }
#define LATE_COPY(function, symbol, to_type, from_type, direction)                         \
  EXPORT CUresult symbol(to_type to, from_type from, size_t bytes, CUstream stream) {      \
    ENTER(function, NEEDS_CONTEXT);                                                        \
    return copy(line((uintptr_t)to, (uintptr_t)from, bytes), direction, stream, 1);        \
  }

PLAIN_COPY("cuMemcpy", cuMemcpy, CUdeviceptr, CUdeviceptr, ANY)
PLAIN_COPY("cuMemcpyHtoD", cuMemcpyHtoD_v2, CUdeviceptr, const void *, TO_DEVICE)
PLAIN_COPY("cuMemcpyDtoH", cuMemcpyDtoH_v2, void *, CUdeviceptr, TO_HOST)
PLAIN_COPY("cuMemcpyDtoD", cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr, ON_DEVICE)
LATE_COPY("cuMemcpyAsync", cuMemcpyAsync, CUdeviceptr, CUdeviceptr, ANY)
LATE_COPY("cuMemcpyHtoDAsync", cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, TO_DEVICE)
LATE_COPY("cuMemcpyDtoHAsync", cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, TO_HOST)
LATE_COPY("cuMemcpyDtoDAsync", cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, ON_DEVICE)

static int is_on(CUdeviceptr start, size_t bytes, CUcontext context) {
  struct block *block = stub_block(start, bytes, DEVICE);
  return block && context && block->device == stub_device_of(context);
}

/* Without peer access the driver copies through the host, which is slow, so such bytes are counted separately. */
EXPORT CUresult cuMemcpyPeerAsync(
    CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
    CUstream stream) {
  ENTER("cuMemcpyPeerAsync", NEEDS_CONTEXT);
  if (!is_on(to, bytes, to_context) || !is_on(from, bytes, from_context)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult result = copy(line(to, from, bytes), ON_DEVICE, stream, 1);
  if (result == CUDA_SUCCESS) {
    int straight = stub_reaches(stub_device_of(from_context), stub_device_of(to_context));
    *(straight ? &peer_bytes : &peer_bytes_by_host) += (long)bytes;
  }
  return result;
}

struct side {
  size_t x_bytes, y;
  unsigned int memory_type;
  void *host;
  CUdeviceptr device;
  void *array;
  size_t pitch;
};

struct copy_2d {
  struct side from, to;
  size_t width, rows;
};

static struct operation rectangle(const struct copy_2d *shape) {
  const struct side *from = &shape->from;
  const struct side *to = &shape->to;
  /* CU_MEMORYTYPE_HOST is 1 */
  uintptr_t from_base = from->memory_type == 1 ? (uintptr_t)from->host : from->device;
  uintptr_t to_base = to->memory_type == 1 ? (uintptr_t)to->host : to->device;
  return (struct operation){
      .to = (char *)(to_base + to->y * to->pitch + to->x_bytes),
      .from = (const char *)(from_base + from->y * from->pitch + from->x_bytes),
      .width = shape->width,
      .rows = shape->rows,
      .to_pitch = to->pitch,
      .from_pitch = from->pitch};
}

EXPORT CUresult cuMemcpy2D_v2(const struct copy_2d *shape) {
  ENTER("cuMemcpy2D", NEEDS_CONTEXT);
  return copy(rectangle(shape), ANY, NULL, 0);
}

EXPORT CUresult cuMemcpy2DAsync_v2(const struct copy_2d *shape, CUstream stream) {
  ENTER("cuMemcpy2DAsync", NEEDS_CONTEXT);
  return copy(rectangle(shape), ANY, stream, 1);
}

static CUresult set(
    CUdeviceptr to, unsigned int value, unsigned int value_bytes, size_t count, CUstream handle,
    int later) {
  struct stream *stream = stub_stream(handle);
  size_t bytes = count * value_bytes;
  if (!stream || !stub_block(to, bytes, DEVICE)) {
    return stream ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
  }
  stub_submit(stream, (struct operation){.what = SET,
                                    .to = (char *)(uintptr_t)to,
                                    .width = bytes,
                                    .rows = 1,
                                    .to_id = stub_id((void *)(uintptr_t)to, bytes),
                                    .value = value,
                                    .value_bytes = value_bytes});
  if (!later) {
    stub_run_until(stream, stream->submitted);
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  ENTER("cuMemsetD8", NEEDS_CONTEXT);
  return set(to, value, 1, count, NULL, 0);
}

EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
  ENTER("cuMemsetD32", NEEDS_CONTEXT);
  return set(to, value, 4, count, NULL, 0);
}

EXPORT CUresult cuMemsetD8Async(
    CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  ENTER("cuMemsetD8Async", NEEDS_CONTEXT);
  return set(to, value, 1, count, stream, 1);
}

EXPORT CUresult cuMemsetD32Async(
    CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  ENTER("cuMemsetD32Async", NEEDS_CONTEXT);
  return set(to, value, 4, count, stream, 1);
}
