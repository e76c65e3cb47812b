/* From the harness's problem and tensors to the arguments of gpu/fa.h, for every backend that runs the
 * kernels. */
#ifndef FA_GPU_ARGS_PROBLEM_H
#define FA_GPU_ARGS_PROBLEM_H

#include "cases/vocabulary/problem.h"
#include "cases/vocabulary/profile.h"
#include "cases/tensors/set.h"
#include "gpu/fa.h"
#include "gpu/expr/program.h"
#include "gpu/kernels/registry/flash_forward.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* The flex family, whose expressions are parsed first, once for a run: what an attention's flex then points
 * to. The third is fa_args_tensors for this family; x must stay where it is as long as the attention is used.
 */
typedef struct fa_args_flex {
  fa_flex flex;
  fa_flex_program *program; /* NULL: there are no expressions */
} fa_args_flex;
fa_status fa_args_flex_make(const fa_problem *p, fa_args_flex *x, fa_error *err);
void fa_args_flex_free(fa_args_flex *x);
const char *fa_args_flex_tensors(const fa_problem *p, const fa_tensors *t, fa_args_flex *x, fa_attention *a);
/* dbuffer; part of fa_args_gradients. */
const char *fa_args_flex_gradients(const fa_problem *p, const fa_tensors *t, fa_gradients *g);
/* Are there kernels for this problem, forward or backward? As fa_args_forward_supported. */
bool fa_args_flex_supported(const fa_problem *p, bool backward, const fa_kernel_device *device, char *why,
                            size_t why_size);

/* Parts of these: all but the flex family's own; what all families have in common, and q, o, lse, leftpad_k,
 * slopes. */
void fa_args_common(const fa_problem *p, fa_attention *a);
void fa_args_attention(const fa_problem *p, fa_attention *a);
const char *fa_args_attention_tensors(const fa_problem *p, const fa_tensors *t, fa_attention *a);
const char *fa_args_outer_tensors(const fa_problem *p, const fa_tensors *t, fa_attention *a);

/* d_o, d_lse, dq, dk, dv, dbias. */
const char *fa_args_gradients(const fa_problem *p, const fa_tensors *t, fa_gradients *g);

/* Is there a forward kernel for this problem, if its rows are aligned? false: a clause says why not. device:
 * as in gpu/plan/forward.h. */
bool fa_args_forward_supported(const fa_problem *p, const fa_kernel_device *device, char *why,
                               size_t why_size);

/* The arithmetic of the kernels for this problem; n_processors as in gpu/plan/backward.h. hopper: that of
 * the tensor cores, or else Ampere's. */
void fa_args_profile(const fa_problem *p, bool hopper, const fa_kernel_device *device, int n_processors,
                     fa_profile *out);

/* For reports: the kernel and the properties that a problem has. aligned: its rows begin on 16 bytes. */
void fa_args_name_kernel(const fa_problem *p, bool aligned, char *out, size_t size);
/* The main kernel of a backward call: "flash_backward", "memeff_backward", "flex_backward", and with hopper
 * "hopper_backward", "hopper_flex_backward". */
const char *fa_args_backward_name(const fa_attention *a, const fa_gradients *g, bool hopper);

#ifdef __cplusplus
}
#endif

#endif
