/* From checked arguments of a call over a cache to its launches: which kernels, what grids, which parameters.
 * The same for the GPU and for the host executor. */
#ifndef FA_GPU_PLAN_CACHE_H
#define FA_GPU_PLAN_CACHE_H

#include "gpu/fa.h"
#include "gpu/kernels/registry/cache_append.h"
#include "gpu/kernels/params/cache_append.h"
#include "gpu/kernels/registry/cache.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FA_KV_LAUNCHES 3

/* How many splits are best is up to the processors; planned for the same number everywhere (an H100's), a
 * call has the same bits on every device of an architecture, and its workspace is known without one. */
#define FA_KV_PROCESSORS 132

typedef struct fa_kv_launch {
  fa_flash_entry kernel;
  unsigned grid[3];   /* none of them 0 */
  unsigned n_threads; /* of every block */
  size_t shared_bytes;
  bool appends;  /* takes the appending kernel's parameters */
  bool overlaps; /* waits itself for the launch before it */
} fa_kv_launch;

typedef struct fa_kv_plan {
  fa_kv_launch launch[FA_KV_LAUNCHES]; /* to be made in this order, each after the one before */
  int n_launches;
  fa_kv_append_params append;
  fa_kv_params attention; /* and of the combine */
  size_t workspace_bytes;
  size_t queries_at, partial_o_at, partial_lse_at; /* bytes from its beginning */
  bool aligned;
} fa_kv_plan;

/* The kernel for arguments that passed fa_inference_check_problem; NULL, with a message: there is none.
 * aligned: all rows begin on 16 bytes. device, here and below: NULL is any (fa_flash_device). */
const fa_kv_kernel *fa_kv_kernel_for(const fa_attention *a, bool aligned, const fa_flash_device *device,
                                     fa_error *err);

/* Parts of the keys, for such arguments and that kernel. */
int fa_kv_splits(const fa_attention *a, const fa_inference *kv, const fa_kv_kernel *kernel, int n_processors);

/* Checks everything, then plans. The workspace is not known yet: fa_kv_plan_place. FA_ERR_INPUT,
 * FA_ERR_UNSUPPORTED. */
fa_status fa_kv_plan_make(const fa_attention *a, const fa_inference *kv, const fa_flash_device *device,
                          int n_processors, fa_kv_plan *out, fa_error *err);

/* workspace: workspace_bytes of memory for the kernels, aligned to 256. */
void fa_kv_plan_place(fa_kv_plan *plan, void *workspace);

/* What a launch takes. */
const void *fa_kv_plan_params(const fa_kv_plan *plan, int launch);

#ifdef __cplusplus
}
#endif

#endif
