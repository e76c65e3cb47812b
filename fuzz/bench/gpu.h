/* How fast the kernels are on a GPU. */
#ifndef FA_FUZZ_BENCH_GPU_H
#define FA_FUZZ_BENCH_GPU_H

#include "fuzz/options/command.h"

/* Times every case of --cases and --case on the backend "cuda" or "cuda:N": forward, and backward where the
 * case has one. One line each: median of single runs between two events, with their smallest and largest;
 * TFLOP/s of the visible pairs (forward 4 D a pair, backward 10 D); GB/s if every tensor is moved once.
 * --cold empties the L2 cache before every run. --report writes the same as JSON. Returns an exit code. */
int fa_bench_gpu(const fa_cli *cli, const char *backend);

#endif
