/* From checked arguments of a backward call to its launches: which kernels, what grids, which parameters. The
 * same for the GPU and for the host executor. */
#ifndef FA_GPU_PLAN_BACKWARD_H
#define FA_GPU_PLAN_BACKWARD_H

#include "gpu/fa.h"
#include "gpu/kernels/registry/flash_backward.h"
#include "gpu/kernels/params/flash_backward.h"
#include "gpu/kernels/params/memeff_backward.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FA_BACKWARD_LAUNCHES 5

/* The order in which a deterministic call adds depends on how many processors it is planned for; the same
 * number everywhere (an H100's) gives the same bits on every device of an architecture. */
#define FA_DETERMINISTIC_PROCESSORS 132

typedef struct fa_backward_launch {
  fa_kernel_entry kernel;
  unsigned grid[3];   /* none of them 0 */
  unsigned n_threads; /* of every block */
  size_t shared_bytes;
  bool is_memeff; /* takes the memeff kernels' parameters */
} fa_backward_launch;

typedef struct fa_backward_plan {
  fa_backward_launch launch[FA_BACKWARD_LAUNCHES]; /* to be made in this order, each after the one before */
  int n_launches;                                  /* fewer where there are no rows or no keys */
  fa_backward_params params;                 /* of a launch, */
  fa_memeff_backward_params memeff;                    /* or these, if it is_memeff */
  size_t workspace_bytes;
  int64_t delta_at, accum_at[2], dbias_at,
      dq_semaphore_at;    /* floats from its beginning; log2(e) * LSE stands there */
  bool by_queries; /* dK and dV are accumulated in memory, and not dQ */
  int n_splits;
  int head_dim; /* of the tiles, and so of the workspace's rows */
  bool aligned;
  bool is_memeff; /* all launches are */
} fa_backward_plan;

/* device: NULL is any (fa_kernel_device). Whether kernels exist for arguments that passed
 * fa_attention_check_problem; FA_ERR_UNSUPPORTED: none. */
fa_status fa_backward_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err);

/* What is added in memory, in any order, for arguments that passed fa_attention_check_problem, aligned or
 * not: the rows of the tiles that dK and dV come in, the least; 0 if they are made in registers. */
int fa_backward_adds_keys(const fa_attention *a, const fa_kernel_device *device, int n_processors);

/* Whether dQ, being float32, is added to in memory, in any order, for such arguments. */
bool fa_backward_adds_rows(const fa_attention *a, const fa_kernel_device *device);

/* Whether the fast kernels add up a gradient of the bias in memory, in any order; of g dbias_stride counts.
 */
bool fa_backward_adds_dbias(const fa_attention *a, const fa_gradients *g);

/* Checks everything, then plans. n_processors: multiprocessors of the device, for the number of accumulators
 * of a deterministic call. The workspace is not known yet: fa_backward_plan_place. FA_ERR_INPUT,
 * FA_ERR_UNSUPPORTED. */
fa_status fa_backward_plan_make(const fa_attention *a, const fa_gradients *g, const fa_kernel_device *device,
                                int n_processors, fa_backward_plan *out, fa_error *err);

/* The fast kernels by keys with another main kernel, for arguments that were checked and ask for no gradient
 * of a bias. False: there are none. */
bool fa_backward_plan_around(const fa_attention *a, const fa_gradients *g, const fa_kernel_device *device,
                             const fa_kernel_main *main, int n_processors, fa_backward_plan *out);

/* workspace: workspace_bytes of memory for the kernels, aligned to 256. */
void fa_backward_plan_place(fa_backward_plan *plan, void *workspace);

/* What a launch takes. */
const void *fa_backward_plan_params(const fa_backward_plan *plan, int launch);

#ifdef __cplusplus
}
#endif

#endif
