/* Plans of calls that are the memeff kernels' work (gpu/call/choose.h): parts of those that gpu/plan/forward.h and
 * gpu/plan/backward.h make. */
#ifndef FA_GPU_PLAN_MEMEFF_H
#define FA_GPU_PLAN_MEMEFF_H

#include "gpu/plan/forward.h"
#include "gpu/plan/backward.h"
#include "gpu/kernels/registry/memeff.h"

/* What the parameters of both families of backward kernels have, under the same names: their element types
 * differ, and with them the structs. */
#define FA_FILL_GRADIENTS(p, a, g)                                                                           \
  do {                                                                                                       \
    const bool has_batch_ = !fa_attention_is_varlen(a);                                                      \
    fa_attention_params_fill((a), &(p)->forward);                                                                \
    (p)->d_o = (g)->d_o;                                                                                     \
    (p)->d_lse = (g)->d_lse;                                                                                 \
    (p)->dq = (g)->dq;                                                                                       \
    (p)->dk = (g)->dk;                                                                                       \
    (p)->dv = (g)->dv;                                                                                       \
    (p)->do_stride = fa_kernel_strides_of((g)->do_stride, has_batch_);                                        \
    (p)->dlse_stride = fa_kernel_strides_of((g)->dlse_stride, has_batch_);                                    \
    (p)->dq_stride = fa_kernel_strides_of((g)->dq_stride, has_batch_);                                        \
    (p)->dk_stride = fa_kernel_strides_of((g)->dk_stride, has_batch_);                                        \
    (p)->dv_stride = fa_kernel_strides_of((g)->dv_stride, has_batch_);                                        \
    (p)->dbias_stride = fa_kernel_strides_of((g)->dbias_stride, has_batch_);                                  \
    (p)->scale = (float)(a)->scale;                                                                          \
  } while (0)

/* The grid of a kernel that fa_memeff_forward_find gave. */
void fa_memeff_forward_grid(const fa_attention *a, const fa_kernel *kernel, unsigned grid[3]);

/* Everything but where delta is. */
void fa_memeff_params_fill(const fa_attention *a, const fa_gradients *g, fa_memeff_backward_params *p);
/* Whose delta it is and its strides; returns the bytes of memory that it needs, 0 where the caller has it. */
int64_t fa_memeff_delta_fill(const fa_attention *a, const fa_gradients *g, fa_memeff_backward_params *p);

/* For arguments that passed all checks; out is zeroed but for `aligned`. The workspace holds delta, [batch]
 * [heads_q][seqlen_q] or [heads_q][total_q] floats, unless the caller has it. */
void fa_memeff_backward_plan_make(const fa_attention *a, const fa_gradients *g, const fa_kernel_device *device,
                                fa_backward_plan *out);

/* The kernel that makes all gradients of a call of the memeff kernels in one pass, NULL if there is none:
 * float32, head dims up to 128, not deterministic, and a device with enough shared memory (NULL: any). */
const fa_memeff_kernel *fa_memeff_single_pass(const fa_attention *a, const fa_kernel_device *device);

/* Along which axes a gradient of the bias is summed: FA_MEMEFF_SUM_..., 0 for none. */
int fa_memeff_dbias_sums(const fa_attention *a, const fa_gradients *g);

/* Adds the launch that makes a summed gradient of the bias to a plan of flash kernels, whose workspace has
 * delta with these strides. */
void fa_memeff_dbias_plan(const fa_attention *a, const fa_gradients *g, fa_kernel_strides delta_stride,
                        fa_backward_plan *out);

#endif
