/* Streams and events. A stream is a list of operations that run when a thread waits for them. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stub_cuda_streams.h"

enum { NON_BLOCKING = 1 };

struct event {
  struct stream *stream; /* NULL before the event is recorded */
  unsigned long long until;
  double recorded_at;
  struct event *next;
};

static struct stream defaults[MOST_DEVICES];
static struct stream *streams;
static struct event *events;
CUresult stub_sticky;

struct stream *stub_stream(CUstream handle) {
  /* 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD */
  if ((uintptr_t)handle <= 2) {
    struct stream *one = &defaults[stub_device()];
    one->device = stub_device();
    one->last = one->first ? one->last : &one->first;
    return one;
  }
  for (struct stream *one = streams; one; one = one->next) {
    if (one == handle && one->live) {
      return one;
    }
  }
  return NULL;
}

unsigned long long stub_id(const void *pointer, size_t bytes) {
  struct block *block = stub_block((uintptr_t)pointer, bytes, DEVICE | PINNED | REGISTERED);
  return block ? block->id : 0;
}

static int gone(const void *pointer, size_t bytes, unsigned long long id) {
  return id != 0 && stub_id(pointer, bytes) != id;
}

size_t stub_span(const struct operation *one, size_t pitch) {
  return one->rows == 0 ? 0 : (one->rows - 1) * pitch + one->width;
}

static void execute(struct operation *one) {
  switch (one->what) {
    case COPY:
    case SET:
      if (gone(one->to, stub_span(one, one->to_pitch), one->to_id) ||
          gone(one->from, stub_span(one, one->from_pitch), one->from_id)) {
        stub_sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
        return;
      }
      for (size_t row = 0; row < one->rows; row++) {
        char *to = one->to + row * one->to_pitch;
        if (one->what == COPY) {
          memmove(to, one->from + row * one->from_pitch, one->width);
        } else {
          for (size_t i = 0; i < one->width; i += one->value_bytes) {
            memcpy(to + i, &one->value, one->value_bytes);
          }
        }
      }
      return;
    case WAIT:
      stub_run_until(one->other, one->until);
      return;
    case CALL:
      one->call(one->argument);
      return;
  }
}

void stub_run_until(struct stream *stream, unsigned long long until) {
  while (stream->done < until && stream->first) {
    struct operation *one = stream->first;
    stream->first = one->next;
    if (!stream->first) {
      stream->last = &stream->first;
    }
    execute(one);
    stream->done++;
    free(one);
  }
}

static void append(struct stream *stream, struct operation operation) {
  struct operation *one = malloc(sizeof *one);
  *one = operation;
  one->next = NULL;
  *stream->last = one;
  stream->last = &one->next;
  stream->submitted++;
}

static void wait_for(struct stream *stream, struct stream *other, unsigned long long until) {
  if (stream != other && other->done < until) {
    append(stream, (struct operation){.what = WAIT, .other = other, .until = until});
  }
}

void stub_submit(struct stream *stream, struct operation operation) {
  struct stream *shared = &defaults[stream->device];
  if (stream == shared) {
    for (struct stream *one = streams; one; one = one->next) {
      if (!(one->flags & NON_BLOCKING) && one->device == stream->device) {
        wait_for(stream, one, one->submitted);
      }
    }
  } else if (!(stream->flags & NON_BLOCKING)) {
    wait_for(stream, shared, shared->submitted);
  }
  append(stream, operation);
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned int flags) {
  ENTER("cuStreamCreate", NEEDS_CONTEXT);
  struct stream *one = calloc(1, sizeof *one);
  one->flags = flags;
  one->device = stub_device();
  one->live = 1;
  one->last = &one->first;
  one->next = streams;
  streams = one;
  *stream = one;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
  (void)priority;
  return cuStreamCreate(stream, flags);
}

/* The structure stays, because a synchronisation of the context still runs the queued work. */
EXPORT CUresult cuStreamDestroy_v2(CUstream handle) {
  ENTER("cuStreamDestroy", NEEDS_CONTEXT);
  struct stream *stream = handle ? stub_stream(handle) : NULL;
  if (!stream) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  stream->live = 0;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream handle) {
  ENTER("cuStreamSynchronize", NEEDS_CONTEXT);
  struct stream *stream = stub_stream(handle);
  if (!stream) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  stub_run_until(stream, stream->submitted);
  return stub_sticky;
}

/* Each query runs one operation of the stream, so that polling ends. */
static CUresult query(struct stream *stream, unsigned long long until) {
  if (stream->done >= until) {
    return stub_sticky;
  }
  stub_run_until(stream, stream->done + 1);
  return CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuStreamQuery(CUstream handle) {
  ENTER("cuStreamQuery", NEEDS_CONTEXT);
  struct stream *stream = stub_stream(handle);
  return stream ? query(stream, stream->submitted) : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuCtxSynchronize(void) {
  ENTER("cuCtxSynchronize", NEEDS_CONTEXT);
  for (struct stream *one = streams; one; one = one->next) {
    if (one->device == stub_device()) {
      stub_run_until(one, one->submitted);
    }
  }
  struct stream *shared = stub_stream(NULL);
  stub_run_until(shared, shared->submitted);
  return stub_sticky;
}

static struct event *known(CUevent event) {
  struct event *one = events;
  while (one && one != event) {
    one = one->next;
  }
  return one;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned int flags) {
  (void)flags;
  ENTER("cuEventCreate", NEEDS_CONTEXT);
  struct event *one = calloc(1, sizeof *one);
  one->next = events;
  events = one;
  *event = one;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  ENTER("cuEventDestroy", NEEDS_CONTEXT);
  for (struct event **at = &events; *at; at = &(*at)->next) {
    if (*at == event) {
      *at = event->next;
      free(event);
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream handle) {
  ENTER("cuEventRecord", NEEDS_CONTEXT);
  struct stream *stream = stub_stream(handle);
  if (!stream || !known(event)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  event->stream = stream;
  event->until = stream->submitted;
  event->recorded_at = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent event) {
  ENTER("cuEventQuery", NEEDS_CONTEXT);
  if (!known(event)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return event->stream ? query(event->stream, event->until) : stub_sticky;
}

EXPORT CUresult cuEventSynchronize(CUevent event) {
  ENTER("cuEventSynchronize", NEEDS_CONTEXT);
  if (!known(event)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (event->stream) {
    stub_run_until(event->stream, event->until);
  }
  return stub_sticky;
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  ENTER("cuEventElapsedTime", NEEDS_CONTEXT);
  if (!known(start) || !known(end) || !start->stream || !end->stream) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (start->stream->done < start->until || end->stream->done < end->until) {
    return CUDA_ERROR_NOT_READY;
  }
  *milliseconds = (float)(end->recorded_at - start->recorded_at);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags) {
  (void)flags;
  ENTER("cuStreamWaitEvent", NEEDS_CONTEXT);
  struct stream *stream = stub_stream(handle);
  if (!stream || !known(event)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (event->stream) {
    wait_for(stream, event->stream, event->until);
  }
  return CUDA_SUCCESS;
}

static struct stream *next_of_all(struct stream *one) {
  if (!one) {
    return &defaults[0];
  }
  if (one >= defaults && one < defaults + MOST_DEVICES) {
    return one + 1 < defaults + MOST_DEVICES ? one + 1 : streams;
  }
  return one->next;
}

long stub_finish_range(uintptr_t start, size_t bytes) {
  long touched = 0;
  for (struct stream *one = next_of_all(NULL); one; one = next_of_all(one)) {
    long here = 0;
    for (struct operation *queued = one->first; queued; queued = queued->next) {
      uintptr_t to = (uintptr_t)queued->to;
      uintptr_t from = (uintptr_t)queued->from;
      here += (to && to < start + bytes && start < to + stub_span(queued, queued->to_pitch)) ||
              (from && from < start + bytes && start < from + stub_span(queued, queued->from_pitch));
    }
    if (here > 0) {
      stub_run_until(one, one->submitted);
    }
    touched += here;
  }
  return touched;
}

long stub_stream_count(const char *what) {
  long live = 0;
  long pending = 0;
  long event_count = 0;
  for (struct stream *one = next_of_all(NULL); one; one = next_of_all(one)) {
    live += one->live;
    pending += (long)(one->submitted - one->done);
  }
  for (struct event *one = events; one; one = one->next) {
    event_count++;
  }
  return strcmp(what, "streams") == 0                ? live
         : strcmp(what, "events") == 0               ? event_count
         : strcmp(what, "pending operations") == 0   ? pending
                                                     : stub_copy_count(what);
}
