/* From checked arguments to a launch: which kernel, what grid, which parameters. The same for the GPU and for
 * the host executor. */
#ifndef FA_GPU_PLAN_FORWARD_H
#define FA_GPU_PLAN_FORWARD_H

#include "gpu/fa.h"
#include "gpu/kernels/registry/flash_forward.h"
#include "gpu/kernels/params/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fa_forward_plan {
  const fa_kernel *kernel; /* its name is the name of the device entry point */
  fa_attention_params params;
  unsigned grid[3];
  bool empty; /* nothing to launch: kernel may be NULL */
  bool aligned;
} fa_forward_plan;

/* The kernel for arguments that passed fa_attention_check_problem; NULL, with a message: there is none.
 * aligned: all rows begin on 16 bytes. device, here and below: NULL is any (fa_kernel_device). */
const fa_kernel *fa_forward_kernel(const fa_attention *a, bool aligned, const fa_kernel_device *device,
                                         fa_error *err);

/* Keys that the kernel for such arguments takes at a time, whatever their alignment: the least, or 0 if there
 * is none. */
int fa_forward_block_n(const fa_attention *a, const fa_kernel_device *device);

/* Checks everything, then plans. FA_ERR_INPUT, FA_ERR_UNSUPPORTED. */
fa_status fa_forward_plan_make(const fa_attention *a, const fa_kernel_device *device, fa_forward_plan *out,
                               fa_error *err);

/* The device is not known where a workspace is asked for, and which kernels will do the work is up to it:
 * device i of FA_N_DEVICES_LIKE, by which a caller finds the most that any needs. */
enum { FA_N_DEVICES_LIKE = 8 };
fa_kernel_device fa_device_like(int i);

/* ---- what backward plans need too ---- */

/* 16-byte copies need every row of the tensor to begin on 16 bytes. */
bool fa_rows_are_aligned(const fa_attention *a, const void *data, fa_strides s);
/* All of q, k, v, o; and whole rows too, where the kernels ask for that. */
bool fa_attention_is_aligned(const fa_attention *a);
fa_kernel_strides fa_kernel_strides_of(fa_strides s, bool has_batch);
/* So that 16-byte copies do for a bias or its gradient: keys come in eights too. */
bool fa_bias_is_aligned(const fa_attention *a, const void *data, fa_strides s);
/* What the call asks of a flash kernel, forward or backward. */
fa_kernel_ability fa_kernel_wanted(const fa_attention *a, bool aligned);
void fa_attention_params_fill(const fa_attention *a, fa_attention_params *p);

#ifdef __cplusplus
}
#endif

#endif
