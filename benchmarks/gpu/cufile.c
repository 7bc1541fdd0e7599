/* Measures the throughput of libcufile's APIs for reads: one call for each read from several threads, one call for many pieces (libcufile
 * 1.19), batches, and streams. Usage: cufile LIBRARY FILE cached|direct|compat-cached|compat-direct [SECONDS]
 * Reads have random offsets in whole blocks and go to registered memory of the first GPU. The program prints a table of GB/s with 1, 8 and
 * 32 reads in flight. Each cell is measured by a process of its own, because batches have hung and streams have ended the process: the
 * program starts itself with the size, the API and the depth as arguments after SECONDS. compat forces compatibility mode. The program
 * needs no CUDA toolkit. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 32, PIECES = 16, LIMIT_SECONDS = 30, FORCE_COMPAT_MODE = 2 };

/* The file descriptor to which a cell's process writes its rate, because libcufile may write to standard output. */
enum { RATE = 3 };

/* The types of cufile.h. */
typedef struct { int err, cuda; } Status;
typedef struct { int type; union { int fd; void *handle; } handle; const void *operations; } Description;
typedef struct { int mode; void *base; off_t file, memory; size_t size; void *handle; int operation; void *cookie; } Entry;
typedef struct { void *cookie; int status; size_t result; } End;
typedef struct { void *base; size_t length; } Piece;

static void *cufile, *cuda, *handle, *context;
static char *memory;
static size_t size, file_bytes;
static int way, depth;
static double seconds;
static volatile bool stop;
static long moved[MOST];

static void *symbol(void *library, const char *name) { return dlsym(library, name); }

static void fail(const char *what, long code) {
  fprintf(stderr, "%s: %ld\n", what, code);
  _exit(2);
}

static void check(const char *what, Status status) {
  if (status.err) fail(what, status.err);
}

static Status call(const char *name) {
  Status (*function)(void) = symbol(cufile, name);
  return function();
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static off_t place(unsigned *seed) {
  size_t blocks = (file_bytes - size) / 4096;
  return (off_t)((((size_t)rand_r(seed) << 16) ^ (size_t)rand_r(seed)) % (blocks + 1) * 4096);
}

static void enter(void) {
  int (*set)(void *) = symbol(cuda, "cuCtxSetCurrent");
  if (set(context)) fail("cuCtxSetCurrent", 0);
}

/* Reads until stop, by way 0, 1 or 2: one call; one call for each of PIECES adjacent parts; one call for all PIECES adjacent parts. */
static void *reader(void *number) {
  long me = (long)number;
  unsigned seed = (unsigned)me + 1;
  ssize_t (*read_one)(void *, void *, size_t, off_t, off_t) = symbol(cufile, "cuFileRead");
  ssize_t (*read_many)(void *, const Piece *, size_t, off_t, unsigned) = symbol(cufile, "cuFileReadv");
  enter();
  while (!stop) {
    off_t from = place(&seed), to = (off_t)((size_t)me * size);
    size_t part = size / PIECES;
    ssize_t count = 0;
    if (way == 0) {
      count = read_one(handle, memory, size, from, to);
    } else if (way == 1) {
      for (size_t i = 0; i < PIECES; i++) {
        ssize_t one = read_one(handle, memory, part, from + (off_t)(i * part), to + (off_t)(i * part));
        count = one < 0 ? one : count + one;
      }
    } else {
      Piece pieces[PIECES];
      for (size_t i = 0; i < PIECES; i++) {
        /* The pieces are in reverse order in memory. */
        pieces[i] = (Piece){memory + to + (PIECES - 1 - i) * part, part};
      }
      count = read_many(handle, pieces, PIECES, from, 0);
    }
    if (count != (ssize_t)size) fail("a read", count);
    moved[me] += count;
  }
  return NULL;
}

static void by_threads(void) {
  pthread_t threads[MOST];
  for (long i = 0; i < depth; i++) pthread_create(&threads[i], NULL, reader, (void *)i);
  usleep((useconds_t)(seconds * 1e6));
  stop = true;
  for (int i = 0; i < depth; i++) pthread_join(threads[i], NULL);
}

static void by_batches(void) {
  Status (*set_up)(void **, unsigned) = symbol(cufile, "cuFileBatchIOSetUp");
  Status (*submit)(void *, unsigned, Entry *, unsigned) = symbol(cufile, "cuFileBatchIOSubmit");
  Status (*status)(void *, unsigned, unsigned *, End *, struct timespec *) = symbol(cufile, "cuFileBatchIOGetStatus");
  void *batch;
  unsigned seed = 1;
  check("cuFileBatchIOSetUp", set_up(&batch, (unsigned)depth));
  for (double end = now() + seconds; now() < end;) {
    Entry entries[MOST];
    for (int i = 0; i < depth; i++) {
      entries[i] = (Entry){1, memory, place(&seed), (off_t)((size_t)i * size), size, handle, 0, NULL};
    }
    check("cuFileBatchIOSubmit", submit(batch, (unsigned)depth, entries, 0));
    for (unsigned ended = 0; ended < (unsigned)depth;) {
      End ends[MOST];
      unsigned count = (unsigned)depth - ended;
      check("cuFileBatchIOGetStatus", status(batch, 1, &count, ends, NULL));
      for (unsigned i = 0; i < count; i++) {
        if (ends[i].result != size) fail("a batch's read", (long)ends[i].result);
      }
      ended += count;
    }
    moved[0] += (long)size * depth;
  }
}

static void by_streams(void) {
  Status (*queue)(void *, void *, size_t *, off_t *, off_t *, ssize_t *, void *) = symbol(cufile, "cuFileReadAsync");
  Status (*add)(void *, unsigned) = symbol(cufile, "cuFileStreamRegister");
  int (*create)(void **, unsigned) = symbol(cuda, "cuStreamCreate");
  int (*synchronize)(void *) = symbol(cuda, "cuStreamSynchronize");
  void *streams[MOST];
  unsigned seed = 1;
  for (int i = 0; i < depth; i++) {
    if (create(&streams[i], 1)) fail("cuStreamCreate", 0);
    check("cuFileStreamRegister", add(streams[i], 0));
  }
  for (double end = now() + seconds; now() < end;) {
    size_t sizes[MOST];
    off_t from[MOST], to[MOST];
    ssize_t counts[MOST];
    for (int i = 0; i < depth; i++) {
      sizes[i] = size;
      from[i] = place(&seed);
      to[i] = (off_t)((size_t)i * size);
      counts[i] = 0;
      check("cuFileReadAsync", queue(handle, memory, &sizes[i], &from[i], &to[i], &counts[i], streams[i]));
    }
    for (int i = 0; i < depth; i++) {
      if (synchronize(streams[i])) fail("cuStreamSynchronize", 0);
      if (counts[i] != (ssize_t)size) fail("a stream's read", (long)counts[i]);
      moved[0] += counts[i];
    }
  }
}

static void open_all(const char *file, bool direct, bool compat) {
  int (*init)(unsigned) = symbol(cuda, "cuInit");
  int (*device)(int *, int) = symbol(cuda, "cuDeviceGet");
  int (*retain)(void **, int) = symbol(cuda, "cuDevicePrimaryCtxRetain");
  int (*allocate)(void *, size_t) = symbol(cuda, "cuMemAlloc_v2");
  Status (*set)(unsigned, bool) = symbol(cufile, "cuFileSetParameterBool");
  Status (*add_file)(void **, Description *) = symbol(cufile, "cuFileHandleRegister");
  Status (*add_memory)(const void *, size_t, int) = symbol(cufile, "cuFileBufRegister");
  int gpu;
  if (init(0) || device(&gpu, 0) || retain(&context, gpu)) fail("no GPU", 0);
  enter();
  if (allocate(&memory, size * MOST)) fail("cuMemAlloc", (long)size * MOST);
  if (compat && set) check("cuFileSetParameterBool", set(FORCE_COMPAT_MODE, true));
  check("cuFileDriverOpen", call("cuFileDriverOpen"));
  Description description = {.type = 1, .handle.fd = open(file, O_RDONLY | (direct ? O_DIRECT : 0))};
  check("cuFileHandleRegister", add_file(&handle, &description));
  check("cuFileBufRegister", add_memory(memory, size * MOST, 0));
}

/* Measures one cell and prints its rate. */
static int measure(const char *file, bool direct, bool compat) {
  alarm(LIMIT_SECONDS);
  open_all(file, direct, compat);
  double begun = now();
  if (way <= 2) by_threads();
  else if (way == 3) by_batches();
  else by_streams();
  double took = now() - begun, rate = 0;
  for (int i = 0; i < MOST; i++) rate += (double)moved[i] / took / 1e9;
  dprintf(RATE, "%.2f", rate);
  _exit(0);
}

/* Starts a process that measures one cell, and prints its rate, or how it ended without a rate. */
static void cell(char **arguments, const char *duration) {
  char of_size[32], of_way[32], of_depth[32], said[64];
  snprintf(of_size, sizeof of_size, "%zu", size);
  snprintf(of_way, sizeof of_way, "%d", way);
  snprintf(of_depth, sizeof of_depth, "%d", depth);
  int ends[2];
  if (pipe(ends)) fail("pipe", 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(2, 1);
    dup2(ends[1], RATE);
    execl("/proc/self/exe", "cufile", arguments[1], arguments[2], arguments[3], duration, of_size, of_way, of_depth, NULL);
    _exit(3);
  }
  close(ends[1]);
  ssize_t got = read(ends[0], said, sizeof said - 1);
  close(ends[0]);
  int status;
  waitpid(child, &status, 0);
  said[got > 0 ? got : 0] = 0;
  printf(" %s |", got > 0                       ? said
                  : !WIFSIGNALED(status)         ? "failed"
                  : WTERMSIG(status) == SIGALRM  ? "hung"
                                                 : "crashed");
}

int main(int count, char **arguments) {
  static const char *const WAYS[] = {"threads", "16 reads", "readv of 16", "batches", "streams"};
  static const char *const NEEDS[] = {"cuFileRead", "cuFileRead", "cuFileReadv", "cuFileBatchIOSetUp", "cuFileReadAsync"};
  static const int DEPTHS[] = {1, 8, 32};
  if (count < 4) {
    fprintf(stderr, "usage: cufile LIBRARY FILE cached|direct|compat-cached|compat-direct [SECONDS]\n");
    return 64;
  }
  const char *duration = count > 4 ? arguments[4] : "1";
  seconds = atof(duration);
  bool direct = strstr(arguments[3], "direct"), compat = strstr(arguments[3], "compat");
  cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  cufile = cuda ? dlopen(arguments[1], RTLD_NOW) : NULL;
  if (!cufile) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  struct stat file;
  if (stat(arguments[2], &file) || file.st_size < 1 << 28) {
    fprintf(stderr, "%s must be a file of 256 MiB or more\n", arguments[2]);
    return 1;
  }
  file_bytes = (size_t)file.st_size;
  if (count > 7) {
    size = (size_t)atol(arguments[5]);
    way = atoi(arguments[6]);
    depth = atoi(arguments[7]);
    return measure(arguments[2], direct, compat);
  }
  int version = 0;
  Status (*get_version)(int *) = symbol(cufile, "cuFileGetVersion");
  if (get_version) check("cuFileGetVersion", get_version(&version));
  printf("libcufile %d.%d, %s\n\n| request | way | 1 | 8 | 32 |\n| --- | --- | --- | --- | --- |\n", version / 1000, version % 1000 / 10, arguments[3]);
  static const size_t SIZES[] = {4 << 10, 64 << 10, 1 << 20, 8 << 20};
  for (int s = 0; s < 4; s++) {
    size = SIZES[s];
    for (way = 0; way < 5; way++) {
      if (!symbol(cufile, NEEDS[way]) || ((way == 1 || way == 2) && size < 64 << 10)) continue;
      printf("| %zu KiB | %s |", size >> 10, WAYS[way]);
      for (int d = 0; d < 3; d++) {
        depth = DEPTHS[d];
        fflush(stdout);
        cell(arguments, duration);
      }
      printf("\n");
    }
  }
  return 0;
}
