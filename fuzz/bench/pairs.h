/* How much work a problem is. */
#ifndef FA_FUZZ_BENCH_PAIRS_H
#define FA_FUZZ_BENCH_PAIRS_H

#include "cases/vocabulary/problem.h"
#include "cases/tensors/set.h"

/* Pairs of query and key that heads and entries see, in all. Under mask_mod or block lists it is estimated:
 * from some rows of every head, which are the middles of equal parts, so that what grows evenly from row to
 * row is counted exactly. t: lists and buffers, in host memory. */
double fa_bench_pairs(const fa_problem *p, const fa_tensors *t);

#endif
