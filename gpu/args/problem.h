/* From the harness's problem and tensors to the arguments of gpu/fa.h, for every backend that runs the
 * kernels. */
#ifndef FA_GPU_ARGS_PROBLEM_H
#define FA_GPU_ARGS_PROBLEM_H

#include "cases/tensors/table.h"
#include "cases/vocabulary/problem.h"
#include "gpu/expr/program.h"
#include "gpu/fa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A combination of features that no kernel has, as a clause, or NULL; then the functions below may be asked. */
const char *fa_args_beyond(const fa_problem *p);
/* The call has a fa_flex: its family is flex, or it has expressions or block lists. */
bool fa_args_is_flex(const fa_problem *p);

/* Sizes, numbers and features, no tensors; pointers of optional arrays are set to something that is not NULL
 * where the problem has them. A clause saying what the kernels have no words for, or NULL. */
const char *fa_args_problem(const fa_problem *p, fa_attention *a);

/* The same with pointers and strides. Device tensors: data holds device addresses. A clause saying which
 * tensor does not fit the problem, or NULL. */
const char *fa_args_tensors(const fa_problem *p, const fa_tensors *t, fa_attention *a);

/* The same two for the kvcache family; the first cannot fail. */
void fa_args_cache(const fa_problem *p, fa_attention *a, fa_inference *kv);
const char *fa_args_cache_tensors(const fa_problem *p, const fa_tensors *t, fa_attention *a,
                                  fa_inference *kv);

/* Calls with a fa_flex, whose expressions are parsed first, once for a run: what an attention's flex then
 * points to, beside all that the functions above and below have filled in. x must stay where it is as long as the
 * attention is used. */
typedef struct fa_args_flex {
  fa_flex flex;
  fa_flex_program *program; /* NULL: there are no expressions */
} fa_args_flex;
fa_status fa_args_flex_make(const fa_problem *p, fa_args_flex *x, fa_error *err);
void fa_args_flex_free(fa_args_flex *x);
/* Sizes and features alone; of any family. */
void fa_args_flex_problem(const fa_problem *p, fa_args_flex *x, fa_attention *a);
const char *fa_args_flex_tensors(const fa_problem *p, const fa_tensors *t, fa_args_flex *x, fa_attention *a);
/* dbuffer; part of fa_args_gradients. */
const char *fa_args_flex_gradients(const fa_problem *p, const fa_tensors *t, fa_gradients *g);
/* Parts of these: all but the flex family's own; what all families have in common, and q, o, lse, leftpad_k,
 * slopes, bias. */
void fa_args_common(const fa_problem *p, fa_attention *a);
void fa_args_attention(const fa_problem *p, fa_attention *a);
const char *fa_args_attention_tensors(const fa_problem *p, const fa_tensors *t, fa_attention *a);
const char *fa_args_outer_tensors(const fa_problem *p, const fa_tensors *t, fa_attention *a);

/* The same for family merge; the first cannot fail. */
void fa_args_states(const fa_problem *p, fa_states *s);
const char *fa_args_states_tensors(const fa_problem *p, const fa_tensors *t, fa_states *s);
const char *fa_args_states_gradients(const fa_problem *p, const fa_tensors *t, fa_states_gradients *g);

/* d_o, d_lse, dq, dk, dv, dbias. */
const char *fa_args_gradients(const fa_problem *p, const fa_tensors *t, fa_gradients *g);

#ifdef __cplusplus
}
#endif

#endif
