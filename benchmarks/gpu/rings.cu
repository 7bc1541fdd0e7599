// What several GPUs get out of the page cache at once: each GPU's threads read the GPU's share of FILE into their two
// pinned buffers and copy them to it. Usage: rings FILE GPUS
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
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
  for (int T : {4, 8, 12, 16, 24}) {
    double best = 0;
    for (int turn = 0; turn < 5; turn++) {
      std::vector<std::atomic<size_t>> next(gpus);
      std::vector<std::thread> all; std::atomic<int> ready{0}; std::atomic<bool> go{false};
      for (int g = 0; g < gpus; g++) for (int i = 0; i < T; i++) all.emplace_back([&, g, i] {
        cudaSetDevice(g); cudaStream_t q; cudaEvent_t e[2]; cudaStreamCreate(&q);
        for (auto& x : e) cudaEventCreateWithFlags(&x, cudaEventDisableTiming);
        char* b = host[g] + i * 2 * K; ready++; while (!go) {}
        for (int k = 0;; k ^= 1) {
          size_t o = next[g].fetch_add(K); if (o >= share) break;
          cudaEventSynchronize(e[k]);
          if (pread(fd, b + k * K, K, g * share + o) != (ssize_t)K) { perror("pread"); exit(1); }
          cudaMemcpyAsync(device[g] + o, b + k * K, K, cudaMemcpyHostToDevice, q); cudaEventRecord(e[k], q);
        }
        cudaStreamSynchronize(q);
        for (auto& x : e) cudaEventDestroy(x);
        cudaStreamDestroy(q);
      });
      while (ready < gpus * T) {}
      auto t = C::now(); go = true;
      for (auto& x : all) x.join();
      double rate = gpus * share / 1e9 / since(t); if (rate > best) best = rate;
    }
    printf("rings in C\t%d GPUs, %d threads each: %.1f GB/s together (best of 5)\n", gpus, T, best);
  }
}
