/* How fast the reference is, beside a plain DGEMM of the same threads in the same run. */
#ifndef FA_FUZZ_BENCH_H
#define FA_FUZZ_BENCH_H

#include <stdio.h>

/* Prints a table: DGEMM 2048^3 (one single-threaded GEMM per thread), forward + backward of one head per
 * thread at S = 2048, D = 128 (values; values with bounds; causal), and the peak memory of one head at
 * S = 32768, D = 64. n_threads 0 = all processors. Takes about a minute. Returns a process exit code. */
int fa_bench_reference(FILE *out, int n_threads);

/* What one case of profile rate-gpu costs a core apart from its subject, on average. Takes about a minute. */
int fa_bench_rate(FILE *out);

#endif
