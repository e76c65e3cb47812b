// A warp hands a warpgroup a word for each thread, again and again, in one place. The readers read, and then either each for itself
// (-DBY=0), or the first lane of each warp behind __syncwarp (1), wgmma.fence (2) or a barrier of the warpgroup (3), arrives at `empty`,
// for which the writers wait. None is a race: the first lane's arrival comes after what its warp read before.
#include <stdio.h>
typedef unsigned long long bar_t;

__device__ void init(unsigned bar, int n) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(n) : "memory"); }
__device__ void arrive(unsigned bar) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(bar) : "memory"); }
__device__ void wait(unsigned bar, int parity) {
  asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra L;}" ::"r"(bar), "r"(parity) : "memory");
}
__global__ void handover(int *sums) {
  __shared__ bar_t bars[2];
  __shared__ volatile int word[128];
  const unsigned full = __cvta_generic_to_shared(bars), empty = full + 8;
  const int t = threadIdx.x, lane = t % 32;
  int sum = 0;
  if (t == 0) init(full, 32), init(empty, BY ? 4 : 128);
  __syncthreads();
  for (int i = 0; i < 100; ++i) {
    if (t >= 128) { // the writers
      if (i > 0) wait(empty, (i - 1) % 2);
      for (int k = lane; k < 128; k += 32) word[k] = i * k;
      arrive(full);
    } else {
      wait(full, i % 2);
      sum += word[t];
      if (BY == 1) __syncwarp();
      if (BY == 2) asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      if (BY == 3) asm volatile("bar.sync 1, 128;" ::: "memory");
      if (!BY || lane == 0) arrive(empty);
    }
  }
  if (t < 128) sums[t] = sum;
}
int main() {
  int *sums, wrong = 0;
  cudaMallocHost(&sums, 512);
  handover<<<1, 160>>>(sums);
  if (cudaDeviceSynchronize() != cudaSuccess) return 2;
  for (int t = 0; t < 128; ++t) wrong += sums[t] != 4950 * t;
  printf("%d wrong sums\n", wrong);
  return wrong != 0;
}
