/* The oracle's own check: attention in long double, one element at a time, straight from
 * docs/reference/semantics.md.
 *
 * Nothing here is clever and nothing is shared with ref/ beyond reading tensors: every S x S matrix of a head
 * is stored whole, every sum is a plain loop, dropout is written from the Philox description. It covers
 * everything except score_mod and mask_mod.
 *
 * Arrays are row-major over the tensor's logical shape. KV cache: rotated queries and new keys enter the
 * scores rounded to the element type, as a kernel reads them back; the cache that is returned holds the new
 * keys before that rounding, and what it held in slots that the call does not write. A row whose logits are
 * all -inf (by masks or by the bias) is empty. */
#ifndef FA_TESTS_SUPPORT_SLOW_ATTENTION_H
#define FA_TESTS_SUPPORT_SLOW_ATTENTION_H

#include "cases/vocabulary/problem.h"
#include "cases/tensors/set.h"

/* mag: how far a backward-stable computation of the element can be off, in units of its roundoff. It is the
 * sum of the absolute values of all terms that were added up, each weighted with 1 + the absolute size of the
 * logit's terms behind it (an absolute error in a logit is a relative error of its exponential). value and
 * mag are 0 together where nothing contributes. */
typedef struct slow_array {
  int64_t n; /* 0 = not an output of this call */
  long double *value, *mag;
} slow_array;

typedef struct slow_outputs {
  slow_array t[FA_T_COUNT];
} slow_outputs;

void slow_outputs_free(slow_outputs *out);

/* Fills o, lse and, for family kvcache, k and v (the caches after the call). *out must be zeroed or filled
 * before by these functions. Aborts when out of memory. */
void slow_forward(const fa_problem *p, const fa_tensors *in, slow_outputs *out);

/* Fills dq, dk, dv and, with bias.grad, dbias. Both given_o and given_lse: the gradients as they follow from
 * those tensors (delta = dO . given_o - dLSE, P = exp(t - given_lse)). Both NULL: from the forward's own
 * values.
 */
void slow_backward(const fa_problem *p, const fa_tensors *in, const fa_tensor *given_o,
                   const fa_tensor *given_lse, slow_outputs *out);

/* What entry b's query head h works on: q [its rows][D], rotated, k [keys][D] and v [keys][Dv], hidden keys
 * left out. Each may be NULL: not wanted. Returns the number of keys. */
int64_t slow_rows(const fa_problem *p, const fa_tensors *in, int64_t b, int64_t h, double *q, double *k,
                  double *v);

/* The part of slow_forward that fills k and v of a call that appends to a cache. */
void slow_caches_after(const fa_problem *p, const fa_tensors *in, slow_outputs *out);

/* Whether the element stays under dropout; i and j local to the sequence, sk the entry's number of keys. */
bool slow_keep(const fa_problem *p, int64_t b, int64_t h, int64_t i, int64_t j, int64_t sk);

/* rounds of Philox-4x32 on counter (x, y, z, w) in place. */
void slow_philox(int rounds, uint64_t seed, uint32_t counter[4]);

#endif
