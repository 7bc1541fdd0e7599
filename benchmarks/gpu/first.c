// Measures the first load of a process without a JVM: FILE is loaded from the page cache onto GPU 0. Usage: first FILE THREADS
// The program prints times in milliseconds from the process's start, which GANTRY_STARTED gives in nanoseconds since 1970.
// Each thread pins its own two buffers, and reads into one buffer while the other is copied to the GPU.
#include <cuda.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
enum { K = 8 << 20 };
static int file;
static uint64_t size;
static CUcontext context;
static CUdeviceptr memory;
static _Atomic uint64_t next;
static void check(int result, const char *what) {
  if (result) { fprintf(stderr, "%s: CUDA %d\n", what, result); exit(1); }
}
static void tell(const char *what) {
  struct timespec now; clock_gettime(CLOCK_REALTIME, &now);
  const char *start = getenv("GANTRY_STARTED");
  printf("%s %.0f ms  ", what, (now.tv_sec * 1e9 + now.tv_nsec - (start ? strtod(start, 0) : 0)) / 1e6);
}
static void *reader(void *unused) {
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  char *buffers = mmap(0, 3 * K, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  buffers = (char *)(((uintptr_t)buffers + K - 1) & -(uintptr_t)K);
  madvise(buffers, 2 * K, MADV_HUGEPAGE); madvise(buffers, 2 * K, 23 /* MADV_POPULATE_WRITE */);
  check(cuMemHostRegister(buffers, 2 * K, CU_MEMHOSTREGISTER_PORTABLE), "cuMemHostRegister");
  CUstream stream; CUevent done[2];
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  for (int k = 0; k < 2; k++) check(cuEventCreate(&done[k], CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  for (int k = 0;; k ^= 1) {
    uint64_t at = atomic_fetch_add(&next, K);
    if (at >= size) break;
    size_t length = size - at < K ? size - at : K;
    cuEventSynchronize(done[k]);
    for (size_t had = 0; had < length;) {
      ssize_t got = pread(file, buffers + k * K + had, length - had, at + had);
      if (got <= 0) { perror("pread"); exit(1); }
      had += got;
    }
    check(cuMemcpyHtoDAsync(memory + at, buffers + k * K, length, stream), "cuMemcpyHtoDAsync");
    check(cuEventRecord(done[k], stream), "cuEventRecord");
  }
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  return unused;
}
int main(int argc, char **argv) {
  int threads = atoi(argv[2]);
  tell("main");
  check(cuInit(0), "cuInit");
  tell("cuInit");
  CUdevice device; check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  tell("context");
  struct stat st; file = open(argv[1], O_RDONLY);
  if (file < 0 || fstat(file, &st)) { perror(argv[1]); return 1; }
  size = st.st_size;
  check(cuMemAlloc(&memory, size), "cuMemAlloc");
  pthread_t all[64];
  for (int i = 0; i < threads && i < 64; i++) pthread_create(&all[i], 0, reader, 0);
  for (int i = 0; i < threads && i < 64; i++) pthread_join(all[i], 0);
  tell("loaded");
  printf("in C, %d threads\n", threads);
  return 0;
}
