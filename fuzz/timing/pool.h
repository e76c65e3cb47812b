/* The places that a child keeps inputs in, and which problems are made of them.
 *
 * All inputs lie there before the clock starts. So that nothing can be computed before, a problem is put together only then: it
 * takes each tensor from a place of its own, drawn at random, and one of two scales; no problem comes twice, because a place
 * gets new data before every turn. */
#ifndef FA_FUZZ_TIMING_POOL_H
#define FA_FUZZ_TIMING_POOL_H

#include "fuzz/timing/requests.h"

#define FA_MOST_PLACES 32

typedef struct fa_pool {
  int n;
  fa_tensors place[FA_MOST_PLACES];
  unsigned version[FA_MOST_PLACES]; /* how often it got new data */
  struct {
    int order[FA_MOST_PLACES], at; /* the next problems' places: each once, then shuffled again */
  } deck[FA_T_COUNT];
  uint64_t *used; /* hashes of the problems so far */
  size_t n_used, capacity;
  int next; /* to get new data */
} fa_pool;

/* How many places tensors of so many bytes need to fill the wanted bytes, within reason. */
int fa_pool_places(double wanted, double bytes_of_one);
/* A problem that there has not been. same: the plain ones, place after place, that anybody would take. */
fa_status fa_pool_draw(fa_pool *x, double scale, bool same, fa_time_problem *out, fa_error *err);
/* The inputs of a problem, as views. */
void fa_pool_inputs(const fa_pool *x, const fa_time_problem *problem, fa_tensors *out);
void fa_pool_free(fa_pool *x);

#endif
