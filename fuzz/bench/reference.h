/* Speed of the reference, compared with a plain DGEMM on the same threads in the same run. */
#ifndef FA_FUZZ_BENCH_REFERENCE_H
#define FA_FUZZ_BENCH_REFERENCE_H

#include "fuzz/judging/run_config.h"
#include "fuzz/options/command.h"

#include <stdio.h>

/* Prints a table: DGEMM 2048^3 (one single-threaded GEMM per thread), forward + backward of one head per
 * thread at S = 2048, D = 128 (values; values with bounds; causal), and the peak memory of one head at
 * S = 32768, D = 64. n_threads 0 = all processors. Takes about a minute. Returns a process exit code. */
int fa_bench_reference(FILE *out, int n_threads);

/* What one case of profile rate-gpu costs, by step (fuzz/judging/stage.h), on average: processor and elapsed time.
 * spec: the backend that is judged, and who judges it. n_jobs run at once, each with cases of its own, in processes of so many
 * lanes, as workers do (fuzz/one/lanes.h; 0 is the usual number); 0 jobs are one. Takes about half a minute. texts: these cases
 * instead, in JSON, with all processors. */
int fa_bench_rate(FILE *out, const char *spec, fa_judge_choice judge, const fa_words *texts, int n_jobs,
                  int64_t lanes);

#endif
