/* Attention as PyTorch code writes it: S, P, dP, dS as whole matrices, one operation after another, with each
 * result rounded to the element type, or none. Other projects measure kernels against this
 * (tests/mutants/rival_rules.c). */
#ifndef FA_TESTS_SUPPORT_STANDARD_ATTENTION_H
#define FA_TESTS_SUPPORT_STANDARD_ATTENTION_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/problem.h"

/* Row-major over the tensors' logical shapes. NULL: not computed. k, v: the whole caches after a call that
 * appends. */
typedef struct standard_outputs {
  double *o, *lse, *dq, *dk, *dv, *dbias, *k, *v, *dbuffer[FA_MAX_CAPTURES];
} standard_outputs;

/* rounded: to the problem's dtype after every operation, except LSE. Elements that belong to no sequence are
 * 0. Aborts when out of memory. */
void standard_attention(const fa_problem *p, const fa_tensors *in, bool rounded, standard_outputs *out);
void standard_outputs_free(standard_outputs *out);

#endif
