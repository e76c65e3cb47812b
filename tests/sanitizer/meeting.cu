// Two warps that do different work meet at a barrier with a number and a count of threads: the count says who takes part, not the
// instruction. Both come through one instruction (-DBY=0), or each has its own: bar.sync (1), barrier.sync (2), which does not say that
// a whole warp comes together, or bar.arrive and bar.sync at two barriers (3). Each way each sees what the other wrote before.
#include <stdio.h>

__device__ void meet(int other) {
  if (BY == 2) asm volatile("barrier.sync 1, 64;" ::: "memory");
  else if (BY == 3) asm volatile("bar.arrive %0, 64; bar.sync %1, 64;" ::"r"(1 + other), "r"(2 - other) : "memory");
  else asm volatile("bar.sync 1, 64;" ::: "memory");
}
__global__ void meeting(int *out) {
  __shared__ volatile int word[64];
  const int t = threadIdx.x;
  if (t >= 64) return; // a third warp takes no part
  if (BY && t < 32) {
    word[t] = 3 * t;
    meet(0);
    out[t] = word[63 - t];
  } else {
    word[t] = t < 32 ? 3 * t : 5 * t;
    meet(1);
    out[t] = word[63 - t];
  }
}
int main() {
  int *out, wrong = 0;
  cudaMallocHost(&out, 256);
  meeting<<<1, 96>>>(out);
  if (cudaDeviceSynchronize() != cudaSuccess) return 2;
  for (int t = 0; t < 64; ++t) wrong += out[t] != (63 - t) * (t < 32 ? 5 : 3);
  printf("%d wrong words\n", wrong);
  return wrong != 0;
}
