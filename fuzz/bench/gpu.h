/* Speed of the kernels on a GPU. */
#ifndef FA_FUZZ_BENCH_GPU_H
#define FA_FUZZ_BENCH_GPU_H

#include "fuzz/options/command.h"

/* Times every case of --cases and --case on the backend "cuda" or "cuda:N": forward, and backward if the case
 * has one. One line each: the median of single runs between two events, with minimum and maximum; TFLOP/s of
 * the visible pairs (forward 4 D per pair, backward 10 D); GB/s if every tensor is moved once. --cold flushes
 * the L2 cache before every run. --report writes the same as JSON. Returns an exit code. */
int fa_bench_gpu(const fa_cli *cli, const char *backend);

#endif
