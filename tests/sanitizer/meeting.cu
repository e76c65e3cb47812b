// Two warps that do different work meet at a barrier with a number and a count of threads, which is what bar.sync with both
// is for: the count says who takes part, not the instruction. Each has an instruction of its own for it (TWO), or both run
// through one. Either way each sees what the other wrote before. (meeting.cu -DTWO=0 or 1)
#include <stdio.h>

__device__ void meet() { asm volatile("bar.sync 1, 64;" ::: "memory"); }

__global__ void meeting(int *out) {
  __shared__ volatile int word[64];
  const int t = threadIdx.x;
  if (t >= 64) return; // a third warp takes no part
  if (TWO && t < 32) {
    word[t] = 3 * t;
    meet();
    out[t] = word[63 - t];
  } else {
    word[t] = TWO || t >= 32 ? 5 * t : 3 * t;
    meet();
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
