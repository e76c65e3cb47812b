/* How long the kernels take on a GPU. */
#ifndef FA_GPU_CUDA_BACKEND_BENCH_H
#define FA_GPU_CUDA_BACKEND_BENCH_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/problem.h"

typedef struct fa_bench_options {
  int device;
  int n_warm;    /* runs before the first that counts */
  int n_runs;    /* runs that count; fewer, but at least five, if they take more than a second in total */
  bool cold;     /* empty the L2 cache before every run, by writing twice its size */
  bool backward; /* time the backward pass; the forward pass runs once before */
} fa_bench_options;

typedef struct fa_bench_result {
  char device[128], driver[32];
  char kernel[128];
  int n_runs;
  double median_us, min_us, max_us; /* of single runs, between two events in the stream */
} fa_bench_result;

/* Runs the problem on copies of the tensors, which do not change. FA_ERR_UNSUPPORTED: no kernel for it. */
fa_status fa_cuda_bench(const fa_problem *p, const fa_tensors *t, const fa_bench_options *opt,
                        fa_bench_result *out, fa_error *err);

#endif
