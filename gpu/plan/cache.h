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

#define FA_CACHE_LAUNCHES 3

/* How many splits are best is up to the processors; planned for the same number everywhere (an H100's), a
 * call has the same bits on every device of an architecture, and its workspace is known without one. */
#define FA_CACHE_PROCESSORS 132

typedef struct fa_cache_launch {
  fa_kernel_entry kernel;
  unsigned grid[3];   /* none of them 0 */
  unsigned n_threads; /* of every block */
  size_t shared_bytes;
  bool appends;  /* takes the appending kernel's parameters */
  bool overlaps; /* waits itself for the launch before it */
} fa_cache_launch;

typedef struct fa_cache_plan {
  fa_cache_launch launch[FA_CACHE_LAUNCHES]; /* to be made in this order, each after the one before */
  int n_launches;
  fa_cache_append_params append;
  fa_cache_params attention; /* and of the combine */
  size_t workspace_bytes;
  size_t queries_at, partial_o_at, partial_lse_at; /* bytes from its beginning */
  bool aligned;
} fa_cache_plan;

/* The kernel for arguments that passed fa_cache_check_problem; NULL, with a message: there is none.
 * aligned: all rows begin on 16 bytes. device, here and below: NULL is any (fa_kernel_device). */
const fa_cache_kernel *fa_cache_kernel_for(const fa_attention *a, bool aligned, const fa_kernel_device *device,
                                     fa_error *err);

/* Parts of the keys, for such arguments and that kernel. */
int fa_cache_splits(const fa_attention *a, const fa_inference *kv, const fa_cache_kernel *kernel, int n_processors);

/* Checks everything, then plans. The workspace is not known yet: fa_cache_plan_place. FA_ERR_INPUT,
 * FA_ERR_UNSUPPORTED. */
fa_status fa_cache_plan_make(const fa_attention *a, const fa_inference *kv, const fa_kernel_device *device,
                          int n_processors, fa_cache_plan *out, fa_error *err);

/* workspace: workspace_bytes of memory for the kernels, aligned to 256. */
void fa_cache_plan_place(fa_cache_plan *plan, void *workspace);

/* What a launch takes. */
const void *fa_cache_plan_params(const fa_cache_plan *plan, int launch);

#ifdef __cplusplus
}
#endif

#endif
