/* What a call launches: the one place where that is decided, for the GPU and for the host executor alike.
 *
 * fa_plan_make checks a call and turns it into a short list of launches. Whoever runs them (gpu/host/launch.h,
 * gpu/cuda/run.h) knows no kernel; reports, profiles and sizes of workspaces read the plan. Behind it, each
 * family of kernels has a file that appends its launches (gpu/plan/parts.h). */
#ifndef FA_GPU_PLAN_MAKE_H
#define FA_GPU_PLAN_MAKE_H

#include "cases/tensors/set.h"
#include "gpu/fa.h"
#include "gpu/kernels/params/flex.h"
#include "gpu/kernels/params/tensor_map.h"
#include "gpu/kernels/params/traits.h"
#include "gpu/kernels/registry/select.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many splits of the keys are best, and in which order a deterministic call adds, is up to the number of
 * processors that a call is planned for. The same number everywhere (an H100's) gives the same bits on every
 * device of an architecture. */
#define FA_PLAN_PROCESSORS 132

typedef enum fa_call_kind {
  FA_CALL_FORWARD,       /* a, with or without flex */
  FA_CALL_BACKWARD,      /* a and g */
  FA_CALL_CACHE,         /* a and cache */
  FA_CALL_BLOCKS,        /* a->flex and lists: block lists are made */
  FA_CALL_MERGE,         /* states, and no a */
  FA_CALL_MERGE_BACKWARD /* states and states_g, and no a */
} fa_call_kind;

typedef struct fa_call {
  fa_call_kind kind;
  const fa_attention *a;
  const fa_gradients *g;
  const fa_inference *cache;
  const fa_states *states;
  const fa_states_gradients *states_g;
  const fa_flex_block_lists *lists;   /* NULL: the outputs are not looked at */
  const fa_flex_functions *functions; /* what the executor's kernels ask for expressions; NULL for a device */
  int n_processors;                   /* that the call is planned for */
  void *workspace;                    /* aligned to 256; NULL: the plan is good for its sizes alone */
} fa_call;

/* Whether the flex kernels do the call, with expressions and block lists or without. */
bool fa_call_is_flex(const fa_call *call);

/* What of a call's expressions is compiled into a kernel on a device. */
typedef enum fa_mods {
  FA_MODS_NONE, /* the kernel is as its recipe says */
  FA_MODS_MASK,
  FA_MODS_SCORE,     /* both expressions */
  FA_MODS_DERIVATIVE /* and the derivatives of score_mod, if there is one */
} fa_mods;

/* Tensors that a launch may write: a bit for each, one for the workspace, which it may then read too, and one for
 * dropout_used. */
typedef fa_tensor_bits fa_writes;
#define FA_WRITES(id) ((fa_writes)1 << (id))
#define FA_WRITES_WORKSPACE FA_WRITES(127)
#define FA_WRITES_DROPOUT_USED FA_WRITES(126)
_Static_assert(FA_T_COUNT <= 126, "a bit for every tensor");

typedef struct fa_launch {
  fa_kernel_entry kernel;
  unsigned grid[3]; /* none of them 0 */
  unsigned n_threads;
  unsigned cluster; /* blocks side by side in x that run together; 0: none */
  size_t shared_bytes;
  bool overlaps; /* waits itself for the launch before it, and may begin before that has ended */
  bool adds_in_order; /* blocks take turns in adding to memory: every run sums in the same order */
  fa_mods mods;
  unsigned lacks; /* fa_trait: where expressions are compiled in, what the call has not */
  int n_maps; /* params begin with so many tensor maps; in each stands a fa_tensor_box, which the executor
                   reads, and of which a map is made for a device */
  int *
      counter; /* in params: the number of a tile counter, -1 as planned: none; NULL: the kernel takes none */
  void *params; /* in the plan */
  fa_writes writes;
} fa_launch;

/* Whose kernels do the work, which says what their arithmetic is like. */
typedef enum fa_plan_family {
  FA_PLAN_FLASH,
  FA_PLAN_MEMEFF,
  FA_PLAN_FLEX,
  FA_PLAN_CACHE,
  FA_PLAN_MERGE
} fa_plan_family;

enum { FA_PLAN_LAUNCHES = 12, FA_PLAN_PARAMS_BYTES = 16384 };

/* Launches point into the plan: it must stay where it was made. What is not mentioned is not initialised. */
typedef struct fa_plan {
  int n_launches;                     /* 0 where there is nothing to be done */
  fa_launch launch[FA_PLAN_LAUNCHES]; /* to be made in this order, each after the one before */
  size_t workspace_bytes;
  const char *name; /* of the kernels that do the work, in reports: "flash_forward", "hopper_backward" */
  fa_plan_family family;
  bool aligned;         /* all rows begin on 16 bytes */
  bool is_hopper;       /* the main kernel is one for sm_90a */
  int block_m, block_n; /* rows and keys that the main kernel takes at a time; 0: there is none */
  int n_splits;         /* of the keys, whose results are combined; 1: none */
  bool adds_dq, adds_dkv, adds_dbias; /* float32 sums in memory that the results come from, in any order */
  size_t params_bytes;                /* in use */
  _Alignas(64) unsigned char params[FA_PLAN_PARAMS_BYTES];
} fa_plan;

/* Checks everything, then plans. device: NULL is any (fa_kernel_device). FA_ERR_INPUT, FA_ERR_UNSUPPORTED. */
fa_status fa_plan_make(const fa_call *call, const fa_kernel_device *device, fa_plan *out, fa_error *err);

/* Whether there are kernels for a call of these sizes and features, if its rows are aligned: no tensors are
 * looked at. FA_ERR_INPUT, FA_ERR_UNSUPPORTED. */
fa_status fa_plan_supported(const fa_call *call, const fa_kernel_device *device, fa_error *err);

#ifdef __cplusplus
}
#endif

#endif
