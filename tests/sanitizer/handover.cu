// A warp hands another a word for each lane, again and again, in one place. The reader's lanes read, meet in __syncwarp, and
// then one of them (-DONE=1), or each for itself (-DONE=0), arrives at `empty`, for which the writer waits. Neither is a race:
// __syncwarp orders the reads before the one arrival, an arrival releases, a wait acquires.
#include <stdio.h>
typedef unsigned long long bar_t;

__device__ void init(unsigned bar, int n) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(n) : "memory"); }
__device__ void arrive(unsigned bar) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(bar) : "memory"); }
__device__ void wait(unsigned bar, int parity) {
  asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra L;}" ::"r"(bar), "r"(parity) : "memory");
}

__global__ void handover(int *sums) {
  __shared__ bar_t bars[2];
  __shared__ volatile int word[32];
  const unsigned full = __cvta_generic_to_shared(bars), empty = full + 8;
  int lane = threadIdx.x % 32, sum = 0;
  if (threadIdx.x == 0) init(full, 32), init(empty, ONE ? 1 : 32);
  __syncthreads();
  for (int i = 0; i < 100; ++i) {
    if (threadIdx.x < 32) {
      if (i > 0) wait(empty, (i - 1) % 2);
      word[lane] = i * lane;
      arrive(full);
    } else {
      wait(full, i % 2);
      sum += word[lane];
      __syncwarp();
      if (!ONE || lane == 0) arrive(empty);
    }
  }
  if (threadIdx.x >= 32) sums[lane] = sum;
}

int main() {
  int *sums, wrong = 0;
  cudaMallocHost(&sums, 128);
  handover<<<1, 64>>>(sums);
  if (cudaDeviceSynchronize() != cudaSuccess) return 2;
  for (int lane = 0; lane < 32; ++lane) wrong += sums[lane] != 4950 * lane;
  printf("%d wrong sums\n", wrong);
  return wrong != 0;
}
