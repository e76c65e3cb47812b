/* What a call has to do at least: the numbers that its time is held against. */
#ifndef FA_FUZZ_BENCH_WORK_H
#define FA_FUZZ_BENCH_WORK_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/problem.h"

/* Floating-point operations of the visible pairs: forward 4 D a pair, backward 10 D. t: as for fa_bench_pairs. */
double fa_bench_flops(const fa_problem *p, const fa_tensors *t, bool backward);
/* Bytes if every tensor is moved once; of a cache only the keys that the sequences have. */
double fa_bench_bytes(const fa_problem *p, const fa_tensors *t, bool backward);

#endif
