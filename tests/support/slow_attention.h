/* The oracle's own check: attention in long double, one element at a time, straight from
 * docs/reference/semantics.md.
 *
 * Nothing here is clever, and nothing is shared with ref/ beyond reading tensors: every S x S matrix of a
 * head is stored whole, every sum is a plain loop, and dropout is written from the Philox description. It
 * covers everything; what score_mod and mask_mod mean is a function that the test writes by hand (slow_set_mods).
 *
 * Arrays are row-major over the tensor's logical shape. KV cache: rotated queries and new keys enter the
 * scores rounded to the element type, as a kernel reads them back. The returned cache holds the new keys
 * before that rounding, and the old content of slots that the call does not write. A row whose logits are all
 * -inf (by masks or by the bias) counts as fully masked. */
#ifndef FA_TESTS_SUPPORT_SLOW_ATTENTION_H
#define FA_TESTS_SUPPORT_SLOW_ATTENTION_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/problem.h"

/* mag: the possible error of a backward-stable computation of the element, in units of its roundoff. It is
 * the sum of the absolute values of all terms, each multiplied by 1 + the absolute size of its logit's terms
 * (an absolute error of a logit is a relative error of its exponential). value and mag are both 0 where
 * nothing contributes. */
typedef struct slow_array {
  int64_t n; /* 0 = not an output of this call */
  long double *value, *mag;
} slow_array;

typedef struct slow_outputs {
  slow_array t[FA_T_COUNT];
} slow_outputs;

void slow_outputs_free(slow_outputs *out);

/* A pair of one sequence and query head, in numbers of that sequence. */
typedef struct slow_pair {
  const fa_problem *p;
  const fa_tensors *in;
  int64_t b, h, i, j, sq, sk;
} slow_pair;

/* What a case's expressions are, as C. Each may be NULL. */
typedef struct slow_mods {
  long double (*score)(const slow_pair *at, long double s,
                       long double *slope); /* *slope: its derivative by s */
  bool (*mask)(const slow_pair *at);
  /* Adds g times the derivative by each buffer's element at s to the buffer's gradient, by slow_add. */
  void (*gradient)(const slow_pair *at, long double s, long double g, slow_outputs *out);
} slow_mods;
/* For all later calls; NULL: none. Used where the problem has expressions, and it must outlive the calls. */
void slow_set_mods(const slow_mods *mods);
/* Element i (and j of a matrix) of captured buffer k. */
long double slow_buffer(const slow_pair *at, int k, int64_t i, int64_t j);
/* Adds to element n of buffer k's gradient. */
void slow_add(slow_outputs *out, int k, int64_t n, long double value);

/* Fills o, lse, with quantized.amax both amax, and, for family kvcache, k and v (the caches after the call). *out must be zeroed, or filled
 * by these functions before. Aborts when out of memory. */
void slow_forward(const fa_problem *p, const fa_tensors *in, slow_outputs *out);

/* Fills dq, dk, dv, with bias.grad dbias, and the gradients of the buffers that have tensors for them. Both given_o and given_lse: the gradients computed from those
 * tensors (delta = dO . given_o - dLSE, P = exp(t - given_lse), but the forward's own P where given_lse is 2^24
 * or more). Both NULL: from the forward's own values. */
void slow_backward(const fa_problem *p, const fa_tensors *in, const fa_tensor *given_o,
                   const fa_tensor *given_lse, slow_outputs *out);

/* The operands of query head h of sequence b: q [its rows][D], rotated, k [keys][D] and v [keys][Dv], without
 * hidden keys. Each may be NULL: not wanted. Returns the number of keys. */
int64_t slow_rows(const fa_problem *p, const fa_tensors *in, int64_t b, int64_t h, double *q, double *k,
                  double *v);

/* The part of slow_forward that fills k and v of a call that appends to a cache. */
void slow_caches_after(const fa_problem *p, const fa_tensors *in, slow_outputs *out);

/* True if dropout keeps the element; i and j are local to the sequence, sk is the sequence's number of
 * keys. */
bool slow_keep(const fa_problem *p, int64_t b, int64_t h, int64_t i, int64_t j, int64_t sk);

/* rounds of Philox-4x32 on counter (x, y, z, w) in place. */
void slow_philox(int rounds, uint64_t seed, uint32_t counter[4]);

#endif
