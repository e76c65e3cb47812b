/* The calls of gpu/fa.h that a case is, for every backend that runs the kernels; and what reports say of them.
 */
#ifndef FA_GPU_ARGS_CALLS_H
#define FA_GPU_ARGS_CALLS_H

#include "cases/arithmetic/profile.h"
#include "gpu/args/problem.h"
#include "gpu/plan/make.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The calls point into it: it must stay where it was made. */
typedef struct fa_args {
  fa_attention a;
  fa_gradients g;
  fa_inference cache;
  fa_args_flex flex;
  fa_states states;
  fa_states_gradients states_g;
  fa_call forward, backward; /* backward: as far as g was asked for */
} fa_args;

/* Between these tensors, with g if backward. *why: a clause saying what the kernels have no words for or which
 * tensor does not fit the problem, or NULL. Errors are those of expressions. Whatever it returns, the caller
 * frees. */
fa_status fa_args_make(const fa_problem *p, const fa_tensors *t, bool backward, int n_processors,
                       fa_args *out, const char **why, fa_error *err);
/* The same of the problem alone, as if all tensors were dense and each row began on 16 bytes, or, not aligned,
 * on none but its elements: for asking what would be planned. */
fa_status fa_args_stand_in(const fa_problem *p, bool aligned, int n_processors, fa_args *out,
                           const char **why, fa_error *err);
void fa_args_free(fa_args *x);

/* Are there kernels for this pass of the problem, if its rows are aligned? false: a clause says why not.
 * device: NULL is any. */
bool fa_args_supported(const fa_problem *p, bool backward, const fa_kernel_device *device, char *why,
                       size_t why_size);

/* The arithmetic of the kernels that this problem may be given, whatever its alignment; n_processors: that it
 * is planned for. hopper: that of its tensor cores, or else Ampere's. */
void fa_args_profile(const fa_problem *p, bool hopper, const fa_kernel_device *device, int n_processors,
                     fa_profile *out);

/* For reports: a forward plan's kernels and the properties that the problem has. */
void fa_args_name(const fa_problem *p, const char *kernels, bool aligned, char *out, size_t size);

#ifdef __cplusplus
}
#endif

#endif
