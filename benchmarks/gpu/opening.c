/* Shows what libcufile does to other threads' device memory while its driver opens. Four threads allocate device memory, copy to it and free
 * it; a fifth opens libcufile's driver and closes it. Usage: opening LIBRARY none|strict|compat [SECONDS]
 * none does not open the driver; strict refuses compatibility mode, compat allows it. The program prints how often each was done, and what
 * the CUDA driver refused. A refusal means that something else freed the memory. It ends with the first few refusals, since the context may
 * fail then, and its exit code is 1. The program needs no CUDA toolkit. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4, COPIED = 4 << 20, MOST_REFUSALS = 4, ALLOW_COMPAT_MODE = 1, NON_BLOCKING = 1 };

/* The type of cufile.h. */
typedef struct { int err, cuda; } Status;

static void *cuda, *cufile, *context;
static bool compat;
static atomic_bool stop;
static atomic_long allocations, openings, refusals;

static void refused(const char *what, uint64_t address, int code) {
  printf("refused: %s of address 0x%lx: %d\n", what, address, code);
  fflush(stdout);
  if (++refusals >= MOST_REFUSALS || code != 1) _exit(1);
}

static void need(const char *what, int code) {
  if (code) {
    printf("failed: %s: %d\n", what, code);
    fflush(stdout);
    _exit(refusals > 0 ? 1 : 2);
  }
}

static void *allocate(void *number) {
  int (*set)(void *) = dlsym(cuda, "cuCtxSetCurrent"), (*take)(uint64_t *, size_t) = dlsym(cuda, "cuMemAlloc_v2");
  int (*give)(uint64_t) = dlsym(cuda, "cuMemFree_v2"), (*open_stream)(void **, unsigned) = dlsym(cuda, "cuStreamCreate");
  int (*copy)(uint64_t, const void *, size_t, void *) = dlsym(cuda, "cuMemcpyHtoDAsync_v2"), (*wait)(void *) = dlsym(cuda, "cuStreamSynchronize");
  int (*pin)(void *, size_t, unsigned) = dlsym(cuda, "cuMemHostRegister_v2");
  need("cuCtxSetCurrent", set(context));
  void *stream, *host = mmap(NULL, COPIED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need("cuStreamCreate", open_stream(&stream, NON_BLOCKING));
  need("cuMemHostRegister", pin(host, COPIED, 0));
  unsigned seed = (unsigned)(uintptr_t)number;
  while (!stop) {
    size_t bytes = (size_t)(1 + rand_r(&seed) % 7) << 20;
    uint64_t memory = 0;
    need("cuMemAlloc", take(&memory, bytes));
    int code = copy(memory, host, bytes < COPIED ? bytes : COPIED, stream);
    if (code) refused("a copy to memory", memory, code);
    need("cuStreamSynchronize", wait(stream));
    code = give(memory);
    if (code) refused("the free", memory, code);
    allocations++;
  }
  return NULL;
}

static void *open_and_close(void *nothing) {
  int (*set)(void *) = dlsym(cuda, "cuCtxSetCurrent");
  Status (*open_driver)(void) = dlsym(cufile, "cuFileDriverOpen"), (*close_driver)(void) = dlsym(cufile, "cuFileDriverClose_v2");
  Status (*choose)(int, bool) = dlsym(cufile, "cuFileSetParameterBool");
  need("cuCtxSetCurrent", set(context));
  while (!stop) {
    if (choose) choose(ALLOW_COMPAT_MODE, compat);
    Status opened = open_driver();
    if (openings++ == 0) printf("cuFileDriverOpen answers %d\n", opened.err);
    if (!opened.err) close_driver();
  }
  return nothing;
}

int main(int count, char **arguments) {
  if (count < 3) {
    fprintf(stderr, "usage: opening LIBRARY none|strict|compat [SECONDS]\n");
    return 64;
  }
  cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  cufile = cuda ? dlopen(arguments[1], RTLD_NOW) : NULL;
  if (!cufile) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  compat = !strcmp(arguments[2], "compat");
  int (*start)(unsigned) = dlsym(cuda, "cuInit"), (*retain)(void **, int) = dlsym(cuda, "cuDevicePrimaryCtxRetain");
  need("cuInit", start(0));
  need("cuDevicePrimaryCtxRetain", retain(&context, 0));
  pthread_t threads[THREADS + 1];
  int started = 0;
  for (; started < THREADS; started++) pthread_create(&threads[started], NULL, allocate, (void *)(uintptr_t)(started + 1));
  if (strcmp(arguments[2], "none")) pthread_create(&threads[started++], NULL, open_and_close, NULL);
  sleep((unsigned)atoi(count > 3 ? arguments[3] : "15"));
  stop = true;
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
  printf("%s: %ld allocations, %ld openings, %ld refused\n", arguments[2], allocations, openings, refusals);
  return refusals > 0;
}
