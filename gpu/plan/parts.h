/* What the makers of plans have in common: gpu/plan/ only. Each appends launches to a plan that
 * fa_plan_make has emptied. */
#ifndef FA_GPU_PLAN_PARTS_H
#define FA_GPU_PLAN_PARTS_H

#include "gpu/kernels/params/attention.h"
#include "gpu/kernels/params/merge.h"
#include "gpu/plan/make.h"

static inline int64_t fa_blocks_of(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

/* The first three members of every row of a table of kernels. */
#define FA_ENTRY_OF(k) ((fa_kernel_entry){(k)->name, (k)->entry, (k)->recipe})

/* Memory of the plan for parameters, not initialised. */
void *fa_plan_params(fa_plan *p, size_t bytes);
/* Gives the last ones back. */
void fa_plan_params_drop(fa_plan *p, size_t bytes);

/* Bytes of the call's workspace, aligned to 256; NULL where there is none yet. */
void *fa_plan_reserve(fa_plan *p, const fa_call *call, int64_t bytes);

/* The next launch, of threads along x; the caller says what it writes, and what else is special. Where the
 * grid is empty it is one that is not made. */
fa_launch *fa_plan_add(fa_plan *p, fa_kernel_entry kernel, int64_t x, int64_t y, int64_t z, int n_threads,
                       size_t shared_bytes, void *params);

/* Says what the main kernel takes at a time. */
static inline void fa_plan_blocks(fa_plan *p, int block_m, int block_n) {
  p->block_m = block_m;
  p->block_n = block_n;
}

#define FA_WRITES_FORWARD (FA_WRITES(FA_T_O) | FA_WRITES(FA_T_LSE) | FA_WRITES_DROPOUT_USED)
#define FA_WRITES_AMAX (FA_WRITES(FA_T_AMAX_P) | FA_WRITES(FA_T_AMAX_O))
#define FA_WRITES_GRADIENTS                                                                                  \
  (FA_WRITES(FA_T_DQ) | FA_WRITES(FA_T_DK) | FA_WRITES(FA_T_DV) | FA_WRITES(FA_T_DBIAS) |                    \
   FA_WRITES(FA_T_DSINKS) | FA_WRITES_WORKSPACE)

/* ---- what a call asks for ---- */

/* 16-byte copies need every row of the tensor to begin on 16 bytes. */
bool fa_rows_are_aligned(const fa_attention *a, const void *data, fa_strides s);
/* The same of keys in a cache, and of new ones: they have a batch axis, whatever queries have. */
bool fa_cache_is_aligned(const fa_attention *a, const void *data, fa_strides s);
/* All of q, k, v, o; and whole rows too, where the kernels ask for that. */
bool fa_attention_is_aligned(const fa_attention *a);
/* Those of a backward call too. */
bool fa_gradients_are_aligned(const fa_attention *a, const fa_gradients *g);
/* So that 16-byte copies do for a bias or its gradient: keys come in eights too. */
bool fa_bias_is_aligned(const fa_attention *a, const void *data, fa_strides s);
fa_kernel_strides fa_kernel_strides_of(fa_strides s, bool has_batch);
/* What the call asks of a flash kernel, forward or backward. */
fa_kernel_ability fa_kernel_wanted(const fa_attention *a, bool aligned);
void fa_attention_params_fill(const fa_attention *a, fa_attention_params *p);
/* Sets the largest P and O to 0, where they are wanted: before anything raises them, and where nothing does. */
void fa_plan_add_amax_clear(const fa_attention *a, fa_plan *out);
/* The larger head dim. */
int64_t fa_attention_widest(const fa_attention *a);

/* ---- the makers ---- */

fa_status fa_plan_forward(const fa_call *call, const fa_kernel_device *device, fa_plan *out, fa_error *err);
/* That, or by the flex kernels: as fa_call_is_flex has it. */
fa_status fa_plan_any_forward(const fa_call *call, const fa_kernel_device *device, fa_plan *out,
                              fa_error *err);
fa_status fa_plan_backward(const fa_call *call, const fa_kernel_device *device, fa_plan *out, fa_error *err);
fa_status fa_plan_cache(const fa_call *call, const fa_kernel_device *device, fa_plan *out, fa_error *err);
fa_status fa_plan_flex_forward(const fa_call *call, const fa_kernel_device *device, fa_plan *out,
                               fa_error *err);
fa_status fa_plan_flex_backward(const fa_call *call, const fa_kernel_device *device, fa_plan *out,
                                fa_error *err);
fa_status fa_plan_flex_blocks(const fa_call *call, fa_plan *out, fa_error *err);
fa_status fa_plan_merge(const fa_call *call, fa_plan *out, fa_error *err); /* both passes */

/* Parts of fa_plan_supported, for arguments that passed the checks of problems. */
fa_status fa_forward_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err);
fa_status fa_any_forward_supported(const fa_call *call, const fa_kernel_device *device, fa_error *err);
fa_status fa_backward_supported(const fa_attention *a, const fa_gradients *g, const fa_kernel_device *device,
                                fa_error *err); /* g: NULL, or asks for a given delta */
fa_status fa_cache_supported(const fa_attention *a, const fa_inference *kv, const fa_kernel_device *device,
                             fa_error *err);
fa_status fa_flex_forward_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err);
fa_status fa_flex_backward_supported(const fa_attention *a, fa_error *err);

/* ---- calls over a cache with what the kernels over one do not have: gpu/plan/cache_gather.c ---- */

/* A bias, dropout, expressions or block lists; f32, and head dims that the kernels over a cache do not take. */
bool fa_cache_is_gathered(const fa_attention *a);

/* Rows that are not copied 16 bytes at a time, which do for 16-bit rows of whole eights. */
bool fa_cache_goes_by_elements(const fa_attention *a);

/* Whether there are kernels for such a call, if its rows are aligned. */
fa_status fa_cache_gathered_supported(const fa_attention *a, const fa_inference *kv,
                                      const fa_kernel_device *device, fa_error *err);

/* For a call that passed all checks of a cache, behind its appends. q: where the queries are now, with q_stride; NULL: in a
 * workspace that is not there yet. */
fa_status fa_cache_add_gathered(const fa_call *call, const void *q, fa_strides q_stride,
                                const fa_kernel_device *device, fa_plan *out, fa_error *err);

#endif
