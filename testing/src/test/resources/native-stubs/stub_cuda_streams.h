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
  unsigned long long to_id, from_id; /* of blocks that must still live when it runs; 0: of none */
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

/* The live stream of this handle, the default stream for 0, or NULL. */
struct stream *stub_stream(CUstream handle);

/* Queues the operation; the default stream and the blocking ones take turns, non-blocking ones know
 * no such order. */
void stub_submit(struct stream *stream, struct operation operation);

void stub_run_until(struct stream *stream, unsigned long long until);

/* How many bytes the operation takes up, of which the rows are a pitch apart. */
size_t stub_span(const struct operation *one, size_t pitch);

/* The id of the block that holds the bytes; 0 if CUDA does not know them. */
unsigned long long stub_id(const void *pointer, size_t bytes);

/* A fault on the device spoils every later wait, as CUDA has it. */
extern CUresult stub_sticky;

long stub_copy_count(const char *what);

#endif
