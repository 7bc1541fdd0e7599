/* The batch API. Entries run late: only when somebody asks for their status, a few at a time and in
 * another order than they were submitted. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stub_cufile.h"

#ifndef STUB_OLD
enum { CANCELED = 0x08, COMPLETE = 0x10, FAILED = 0x40 };

typedef struct {
  int mode;
  struct {
    void *base;
    off_t file, at;
    size_t size;
  } batch;
  CUfileHandle_t handle;
  int opcode;
  void *cookie;
} CUfileIOParams_t;

typedef struct {
  void *cookie;
  int status;
  size_t ret;
} CUfileIOEvents_t;

struct batch {
  unsigned most, waiting;
  int cancelled, broken;
  unsigned seed;
  CUfileIOParams_t *entries; /* those that wait, in no order */
};

static long stalls;

/* The next so many questions for a status find nothing done. */
EXPORT void gantry_stub_stall(long questions) { stalls = questions; }

EXPORT CUfileError_t cuFileBatchIOSetUp(struct batch **out, unsigned most) {
  CALLED("cuFileBatchIOSetUp");
  if (!stub_open()) {
    return stub_status(DRIVER_NOT_INITIALIZED);
  }
  if (most == 0 || most > stub_sizes[IO_BATCHSIZE]) {
    return stub_status(INVALID_VALUE);
  }
  struct batch *one = calloc(1, sizeof *one);
  one->most = most;
  one->seed = most;
  one->entries = calloc(most, sizeof *one->entries);
  pthread_mutex_lock(&stub_lock);
  stub_figures.batches++;
  pthread_mutex_unlock(&stub_lock);
  *out = one;
  return stub_status(0);
}

EXPORT CUfileError_t cuFileBatchIOSubmit(
    struct batch *batch, unsigned count, CUfileIOParams_t *entries, unsigned flags) {
  struct stub_fault fault;
  int fails = stub_called("cuFileBatchIOSubmit", &fault);
  pthread_mutex_lock(&stub_lock);
  int code = fails ? (int)fault.code
             : count == 0 || flags != 0 || batch->waiting + count > batch->most ? BATCH_SUBMIT_ERROR
             : stub_figures.entries + count > (long)stub_sizes[IO_BATCHSIZE]  ? BATCH_FULL
                                                                              : 0;
  /* One bad entry, and the whole submission is refused; the real one would never end one of no bytes. */
  for (unsigned i = 0; code == 0 && i < count; i++) {
    CUfileIOParams_t *one = &entries[i];
    code = one->mode != 1 || !one->handle || (unsigned)one->opcode > 1 || one->batch.file < 0 ||
                   one->batch.size == 0
               ? BATCH_SUBMIT_ERROR
               : 0;
  }
  if (code == 0) {
    memcpy(batch->entries + batch->waiting, entries, count * sizeof *entries);
    batch->waiting += count;
    batch->cancelled = 0;
    stub_figures.entries += count;
    if (stub_figures.entries > stub_figures.most_entries) {
      stub_figures.most_entries = stub_figures.entries;
    }
  }
  if (code != 0 && !batch->broken) {
    /* The real one ends the process when such a batch is used or destroyed. */
    batch->broken = 1;
    stub_figures.batches--;
  }
  pthread_mutex_unlock(&stub_lock);
  return stub_status(code);
}

static CUfileIOEvents_t finish(CUfileIOParams_t *one, int cancelled) {
  struct stub_fault fault;
  if (cancelled) {
    return (CUfileIOEvents_t){one->cookie, CANCELED, 0};
  }
  if (stub_called("batch entry", &fault)) {
    return (CUfileIOEvents_t){one->cookie, fault.detail ? (int)fault.detail : FAILED,
                              (size_t)fault.code};
  }
  ssize_t count = stub_transfer(one->handle, one->batch.base, one->batch.size, one->batch.file,
                                one->batch.at, one->opcode);
  return (CUfileIOEvents_t){one->cookie, count < 0 ? FAILED : COMPLETE, (size_t)count};
}

EXPORT CUfileError_t cuFileBatchIOGetStatus(
    struct batch *batch, unsigned least, unsigned *count, CUfileIOEvents_t *events,
    struct timespec *timeout) {
  CALLED("cuFileBatchIOGetStatus");
  unsigned room = *count;
  *count = 0;
  if (least > room) {
    return stub_status(INVALID_VALUE);
  }
  pthread_mutex_lock(&stub_lock);
  int stalled = stalls > 0;
  stalls -= stalled;
  pthread_mutex_unlock(&stub_lock);
  if (stalled || batch->waiting == 0) {
    struct timespec wait = {0, 1000000};
    nanosleep(timeout && timeout->tv_sec == 0 && timeout->tv_nsec < wait.tv_nsec ? timeout : &wait,
              NULL);
    return stub_status(0);
  }
  unsigned now = least + (unsigned)rand_r(&batch->seed) % 5;
  now = now < room ? now : room;
  while (*count < now && batch->waiting > 0) {
    unsigned which = (unsigned)rand_r(&batch->seed) % batch->waiting;
    events[(*count)++] = finish(&batch->entries[which], batch->cancelled);
    batch->entries[which] = batch->entries[--batch->waiting];
  }
  pthread_mutex_lock(&stub_lock);
  stub_figures.entries -= *count;
  pthread_mutex_unlock(&stub_lock);
  return stub_status(0);
}

/* What was not begun is given up, and still has its event. */
EXPORT CUfileError_t cuFileBatchIOCancel(struct batch *batch) {
  CALLED("cuFileBatchIOCancel");
  batch->cancelled = 1;
  return stub_status(0);
}

EXPORT void cuFileBatchIODestroy(struct batch *batch) {
  struct stub_fault ignored;
  stub_called("cuFileBatchIODestroy", &ignored);
  pthread_mutex_lock(&stub_lock);
  stub_figures.batches -= !batch->broken;
  stub_figures.entries -= batch->waiting;
  stub_figures.disorder += batch->waiting > 0 || batch->broken;
  pthread_mutex_unlock(&stub_lock);
  free(batch->entries);
  free(batch);
}
#endif
