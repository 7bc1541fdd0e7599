// Measures the throughput of loads from the page cache onto several GPUs at once. Usage: rings FILE GPUS
// Each thread reads chunks of FILE into its two pinned buffers in turns and copies each chunk to a GPU.
// Memory, buffers, threads and streams are made before the clock starts; the clock stops when the threads have ended.
// "own": the threads of each GPU read that GPU's part of the file. "from N places": all threads read the whole file, in order from
// each of N offsets, and two consecutive chunks go to one GPU, the next two to the next GPU.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
using C = std::chrono::steady_clock;
static double since(C::time_point t) { return std::chrono::duration<double>(C::now() - t).count(); }
int main(int argc, char** argv) {
  const size_t K = 8u << 20; const int MOST = 24;
  int gpus = atoi(argv[2]), fd = open(argv[1], O_RDONLY);
  struct stat st; if (fd < 0 || fstat(fd, &st)) { perror(argv[1]); return 1; }
  size_t share = st.st_size / gpus / K * K;
  std::vector<char*> device(gpus), host(gpus);
  for (int g = 0; g < gpus; g++) {
    cudaSetDevice(g); if (cudaMalloc(&device[g], share)) return 1;
    host[g] = (char*)mmap(0, MOST * 2 * K, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(host[g], MOST * 2 * K, MADV_HUGEPAGE);
    if (cudaHostRegister(host[g], MOST * 2 * K, cudaHostRegisterPortable)) return 1;
    for (size_t o = 0; o < share; o += K) if (pread(fd, host[g], K, g * share + o) < 0) {}
  }
  const int TURNS = 7;
  for (int places : {0, 1, 2, 4}) for (int T : {4, 6, 8, 12, 16, 24}) {
    const bool mixed = places > 0;
    if (mixed && T != 8) continue;
    const size_t parts = mixed ? places : gpus, part = gpus * share / parts / K * K;
    double rates[TURNS];
    for (int turn = 0; turn < TURNS; turn++) {
      std::vector<std::atomic<size_t>> next(parts);
      std::vector<std::thread> all; std::atomic<int> ready{0}; std::atomic<bool> go{false};
      for (int g = 0; g < gpus; g++) for (int i = 0; i < T; i++) all.emplace_back([&, g, i] {
        std::vector<cudaStream_t> q(gpus); std::vector<cudaEvent_t> e(2 * gpus);
        for (int d = 0; d < gpus; d++) {
          if (d != g && !mixed) continue;
          cudaSetDevice(d); cudaStreamCreateWithFlags(&q[d], cudaStreamNonBlocking);
          for (int k = 0; k < 2; k++) cudaEventCreateWithFlags(&e[2 * d + k], cudaEventDisableTiming);
        }
        cudaSetDevice(g);
        char* b = host[g] + i * 2 * K; ready++; while (!go) {}
        int to[2] = {g, g};
        for (int k = 0;; k ^= 1) {
          size_t p = mixed ? i % places : g, o = next[p].fetch_add(K);
          if (o >= part) break;
          size_t at = p * part + o, c = at / K;
          int d = mixed ? c / 2 % gpus : g;
          if (mixed) o = (c / (2 * gpus) * 2 + c % 2) * K;
          cudaEventSynchronize(e[2 * to[k] + k]);
          if (pread(fd, b + k * K, K, at) != (ssize_t)K) { perror("pread"); exit(1); }
          if (o + K > share) continue;
          if (mixed) cudaSetDevice(d);
          cudaMemcpyAsync(device[d] + o, b + k * K, K, cudaMemcpyHostToDevice, q[d]); cudaEventRecord(e[2 * d + k], q[d]);
          to[k] = d;
        }
        for (int d = 0; d < gpus; d++) if (q[d]) cudaStreamSynchronize(q[d]);
        for (auto x : e) if (x) cudaEventDestroy(x);
        for (auto x : q) if (x) cudaStreamDestroy(x);
      });
      while (ready < gpus * T) {}
      auto t = C::now(); go = true;
      for (auto& x : all) x.join();
      rates[turn] = parts * part / 1e9 / since(t);
    }
    std::sort(rates, rates + TURNS);
    printf("rings in C\t%d GPUs, %d threads each, ", gpus, T);
    mixed ? printf("from %d places", places) : printf("own");
    printf(": median %.1f GB/s together (best %.1f)\n", rates[TURNS / 2], rates[TURNS - 1]);
  }
}
