/* The amount of work in a problem. */
#ifndef FA_FUZZ_BENCH_PAIRS_H
#define FA_FUZZ_BENCH_PAIRS_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/problem.h"

/* Number of visible pairs of query and key over all heads and sequences. With mask_mod or block lists it is
 * an estimate from some rows of every head, the middles of equal parts, so that counts that grow linearly
 * from row to row are exact. t: lists and buffers, in host memory. */
double fa_bench_pairs(const fa_problem *p, const fa_tensors *t);

#endif
