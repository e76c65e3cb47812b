/* From checked arguments of a call with expressions or block lists to its launches: which kernels, what
 * grids, which parameters. The same for the GPU and for the host executor. */
#ifndef FA_GPU_PLAN_FLEX_H
#define FA_GPU_PLAN_FLEX_H

#include "gpu/fa.h"
#include "gpu/expr/program.h"
#include "gpu/plan/backward.h"
#include "gpu/kernels/registry/flash_backward.h"
#include "gpu/kernels/params/flex_exact.h"
#include "gpu/kernels/params/flex_functions.h"
#include "gpu/kernels/params/flex_lists.h"
#include "gpu/kernels/params/hopper_backward.h"
#include "gpu/kernels/params/hopper_forward.h"
#include "gpu/kernels/params/memeff_backward.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FA_FLEX_LAUNCHES = 12, FA_FLEX_MAPS = 6 };

/* Whose parameters a launch takes. */
typedef enum fa_flex_params_kind {
  FA_FLEX_PARAMS_LISTS,
  FA_FLEX_PARAMS_EXACT,
  FA_FLEX_PARAMS_FORWARD,
  FA_FLEX_PARAMS_BACKWARD,
  FA_FLEX_PARAMS_FLASH_BACKWARD,
  FA_FLEX_PARAMS_HOPPER,
  FA_FLEX_PARAMS_HOPPER_BACKWARD
} fa_flex_params_kind;

typedef struct fa_flex_launch {
  fa_kernel_entry kernel;
  unsigned grid[3];   /* none of them 0 */
  unsigned n_threads; /* of every block */
  size_t shared_bytes;
  bool has_mods;  /* on a device it is compiled for the call's expressions, or else as the recipe says */
  bool has_slope; /* and with the derivatives of score_mod, if there is one */
  int n_maps;     /* params begin with so many maps, to be made from: */
  fa_tensor_box box[FA_FLEX_MAPS];
  fa_flex_params_kind params_kind;
  union {
    fa_tensor_map maps[FA_FLEX_MAPS];
    fa_flex_lists_params lists;
    fa_flex_exact_params exact;
    fa_attention_params forward;
    fa_memeff_backward_params backward;
    fa_backward_params flash_backward;
    fa_hopper_params hopper; /* tiles.counter is -1 */
    fa_hopper_backward_params hopper_backward;
  } params;
} fa_flex_launch;

typedef struct fa_flex_plan {
  fa_flex_launch launch[FA_FLEX_LAUNCHES]; /* to be made in this order, each after the one before */
  int n_launches;                          /* 0 where there is nothing to be done */
  size_t workspace_bytes;
  bool aligned;                     /* all rows begin on 16 bytes */
  bool is_hopper;                   /* the main kernel is one for sm_90a */
  bool wanted[FA_FLEX_MAX_BUFFERS]; /* backward: buffers whose gradients are */
} fa_flex_plan;

/* All: check everything, then plan. a->flex is not NULL. device: NULL is any (fa_kernel_device). functions:
 * what the executor's kernels call, NULL for a device. workspace: of workspace_bytes, aligned to 256; NULL:
 * the plan is good for its size alone. FA_ERR_INPUT, FA_ERR_UNSUPPORTED. */
fa_status fa_flex_forward_plan_make(const fa_attention *a, const fa_kernel_device *device,
                                    const fa_flex_functions *functions, void *workspace, fa_flex_plan *out,
                                    fa_error *err);
fa_status fa_flex_backward_plan_make(const fa_attention *a, const fa_gradients *g,
                                     const fa_kernel_device *device, const fa_flex_functions *functions,
                                     void *workspace, fa_flex_plan *out, fa_error *err);
/* lists NULL: the outputs are not looked at. */
fa_status fa_flex_blocks_plan_make(const fa_attention *a, const fa_flex_block_lists *lists,
                                   const fa_flex_functions *functions, void *workspace, fa_flex_plan *out,
                                   fa_error *err);

/* Whether there are kernels for arguments that passed fa_attention_check_problem. FA_ERR_UNSUPPORTED. */
fa_status fa_flex_forward_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err);
fa_status fa_flex_backward_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err);

#ifdef __cplusplus
}
#endif

#endif
