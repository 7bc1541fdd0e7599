/* Declarations that streams and copies share. */
#ifndef GANTRY_STUB_CUDA_STREAMS_H
#define GANTRY_STUB_CUDA_STREAMS_H

#include "stub_cuda.h"

enum what { COPY, SET, WAIT, CALL };

struct operation {
  enum what what;
  char *to;
  const char *from;
  size_t width, rows, to_pitch, from_pitch;
  unsigned long long to_id, from_id; /* the ids of blocks that must still exist when the operation runs; 0 for none */
  unsigned int value, value_bytes;
  struct stream *other;
  unsigned long long until;
  void (*call)(void *);
  void *argument;
  struct operation *next;
};

struct stream {
  unsigned int flags;
  CUdevice device;
  int live;
  unsigned long long submitted, done;
  struct operation *first, **last;
  struct stream *next;
};

/* Returns the live stream of a handle, the default stream for 0, or NULL. */
struct stream *stub_stream(CUstream handle);

/* Queues an operation. The default stream and blocking streams are ordered with each other, non-blocking
 * streams are not. */
void stub_submit(struct stream *stream, struct operation operation);

void stub_run_until(struct stream *stream, unsigned long long until);

/* Returns how many bytes the rows of an operation span with a pitch. */
size_t stub_span(const struct operation *one, size_t pitch);

/* Returns the id of the block that holds the bytes; 0 if CUDA does not know them. */
unsigned long long stub_id(const void *pointer, size_t bytes);

/* The error of a fault on the device, which every later wait returns, as in CUDA. */
extern CUresult stub_sticky;

long stub_copy_count(const char *what);

#endif
