/* Calls that are the memeff kernels' work (gpu/call/choose.h), and what other families' plans have of it. */
#ifndef FA_GPU_PLAN_MEMEFF_H
#define FA_GPU_PLAN_MEMEFF_H

#include "gpu/call/check.h"
#include "gpu/kernels/params/memeff_backward.h"
#include "gpu/kernels/registry/select.h"
#include "gpu/plan/parts.h"

/* What the parameters of both families of backward kernels have, under the same names: their element types
 * differ, and with them the structs. */
#define FA_FILL_GRADIENTS(p, a, g)                                                                           \
  do {                                                                                                       \
    const bool has_batch_ = !fa_attention_is_varlen(a);                                                      \
    fa_attention_params_fill((a), &(p)->forward);                                                            \
    (p)->d_o = (g)->d_o;                                                                                     \
    (p)->d_lse = (g)->d_lse;                                                                                 \
    (p)->dq = (g)->dq;                                                                                       \
    (p)->dk = (g)->dk;                                                                                       \
    (p)->dv = (g)->dv;                                                                                       \
    (p)->do_stride = fa_kernel_strides_of((g)->do_stride, has_batch_);                                       \
    (p)->dlse_stride = fa_kernel_strides_of((g)->dlse_stride, fa_attention_has_lse_batch(a));                \
    (p)->dq_stride = fa_kernel_strides_of((g)->dq_stride, has_batch_);                                       \
    (p)->dk_stride = fa_kernel_strides_of((g)->dk_stride, has_batch_);                                       \
    (p)->dv_stride = fa_kernel_strides_of((g)->dv_stride, has_batch_);                                       \
    (p)->dbias_stride = fa_kernel_strides_of((g)->dbias_stride, true);                                       \
    (p)->scale = (float)(a)->scale;                                                                          \
  } while (0)

/* Backward, for arguments that passed all checks. The workspace holds delta, [batch][heads_q][seqlen_q] or
 * [heads_q][total_q] floats, as the LSE is laid out, unless the caller has it. */
void fa_memeff_plan_backward(const fa_call *call, const fa_kernel_device *device, fa_plan *out);

/* Everything but where delta is. */
void fa_memeff_params_fill(const fa_attention *a, const fa_gradients *g, fa_memeff_backward_params *p);
/* Whose delta it is and its strides; returns the bytes of memory that it needs, 0 where the caller has it. */
int64_t fa_memeff_delta_fill(const fa_attention *a, const fa_gradients *g, fa_memeff_backward_params *p);

/* Grids of launches of one of these kernels. */
void fa_memeff_grid_keys(const fa_attention *a, const fa_memeff_kernel *k, int64_t grid[3]);
void fa_memeff_grid_queries(const fa_attention *a, const fa_memeff_kernel *k, int64_t grid[3]);
/* Of what sums up a gradient of the bias; all zero where there is nothing to be summed. */
void fa_memeff_grid_dbias(const fa_attention *a, const fa_gradients *g, const fa_memeff_kernel *k,
                          int64_t grid[3]);

/* Adds the launch that makes the gradient of the sinks, where it is wanted, from a delta of these strides; delta_block as
 * in fa_memeff_backward_params. */
void fa_memeff_add_dsinks(const fa_call *call, float *delta, fa_kernel_strides delta_stride, int delta_block,
                          fa_plan *out);
/* Adds the launch that makes a summed gradient of the bias to a plan of flash kernels, whose workspace has
 * delta with these strides. */
void fa_memeff_add_dbias(const fa_call *call, float *delta, fa_kernel_strides delta_stride, fa_plan *out);

#endif
