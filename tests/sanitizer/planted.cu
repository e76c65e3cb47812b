// One fault for each tool of compute-sanitizer, in a process that is forked as the judge's is and in a kernel whose name begins as
// those of the judge's kernels do: what judge.sh must see before its silence means anything.
//   planted 1: a write behind an array; 2: a read of what nobody wrote; 3: a race in shared memory; 4: a barrier that the warps of
// a block come to by different instructions
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

extern "C" __global__ void fa_judge_entry_planted(int fault, int *words) {
  __shared__ int shared[64];
  const int i = threadIdx.x;
  if (fault == 1) words[4096 + i] = i;
  if (fault == 2) words[i] = words[64 + i] + 1;
  shared[i] = i;
  if (fault != 3) __syncthreads();
  words[i] += shared[63 - i];
  if (fault != 4) return;
  if (i < 32) {
    words[i] *= 3;
    asm volatile("bar.sync 1, 64;" ::: "memory");
    words[63 - i] += 1;
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    words[i] ^= 5;
  }
}

static int run(int fault) {
  int *words = nullptr;
  if (cudaMalloc(&words, 4096 * sizeof(int)) != cudaSuccess) return 2;
  if (cudaMemset(words, 0, 64 * sizeof(int)) != cudaSuccess) return 2;
  fa_judge_entry_planted<<<1, 64>>>(fault, words);
  cudaDeviceSynchronize();
  return 0;
}

int main(int argc, char **argv) {
  int how = 0;
  const pid_t child = fork();
  if (child == 0) _exit(run(argc > 1 ? atoi(argv[1]) : 0));
  return child < 0 || waitpid(child, &how, 0) < 0 || how != 0 ? 2 : 0;
}
