/* Which family of kernels does a call's work: the one place that decides it. */
#ifndef FA_GPU_CALL_CHOOSE_H
#define FA_GPU_CALL_CHOOSE_H

#include "gpu/fa.h"

/* FLASH: 16-bit elements, head dims up to 256 (gpu/kernels/flash_*). WIDE: every element type and head dim of
 * the memory-efficient family (gpu/kernels/wide_*). */
typedef enum fa_kernels { FA_KERNELS_FLASH, FA_KERNELS_MEMEFF } fa_kernels;

/* For sizes that are in range. The backward pass may take others than the forward pass; g may be NULL: then
 * it asks for nothing of its own. */
fa_kernels fa_choose_forward(const fa_attention *a);
fa_kernels fa_choose_backward(const fa_attention *a, const fa_gradients *g);

/* FA_ERR_UNSUPPORTED: what is asked for is spread over both, and the message names the two things. */
fa_status fa_choose_check(const fa_attention *a, const fa_gradients *g, fa_error *err);

#endif
