/* Chooses the family of kernels for a call: the only place that decides it. */
#ifndef FA_GPU_CALL_CHOOSE_H
#define FA_GPU_CALL_CHOOSE_H

#include "gpu/fa.h"

/* FLASH: 16-bit elements, head dims up to 256 (gpu/kernels/flash). MEMEFF: every element type and head dim
 * (gpu/kernels/memeff). */
typedef enum fa_kernels { FA_KERNELS_FLASH, FA_KERNELS_MEMEFF } fa_kernels;

/* Sizes must be in range. The backward pass may use another family than the forward pass; g may be NULL: then
 * it needs nothing special. */
fa_kernels fa_choose_forward(const fa_attention *a);
fa_kernels fa_choose_backward(const fa_attention *a, const fa_gradients *g);

/* Along which axes a gradient of the bias is summed: FA_MEMEFF_SUM_..., 0 for none. */
int fa_memeff_dbias_sums(const fa_attention *a, const fa_gradients *g);
/* Whether the flash kernels add up a gradient of the bias in memory, in any order; of g dbias_stride counts. */
bool fa_backward_adds_dbias(const fa_attention *a, const fa_gradients *g);

/* The flex kernels are for calls with expressions or block lists, and have what the two families have apart: a call with
 * features of both, such as softcap and a bias, is theirs. */
bool fa_choose_flex(const fa_attention *a, const fa_gradients *g);

/* FA_ERR_UNSUPPORTED: the call needs what only some flash kernels have, p_debug or mask_bits, and what these have not;
 * the message names the two. */
fa_status fa_choose_check(const fa_attention *a, const fa_gradients *g, fa_error *err);

#endif
