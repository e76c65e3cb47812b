/* Kernels for sm_90a, where there is one that can do the call; what they cannot do falls to the portable
 * ones. For arguments that passed all checks. */
#ifndef FA_GPU_PLAN_HOPPER_H
#define FA_GPU_PLAN_HOPPER_H

#include "gpu/kernels/params/hopper.h"
#include "gpu/plan/fast_backward.h"

/* An axis of a tensor behind its contiguous one: elements, how far apart, and how many of them a box has. */
typedef struct fa_hopper_axis {
  int64_t size, stride;
  int box;
} fa_hopper_axis;

/* Puts the box of a tensor where its map will be. False: no map has such strides, or nothing in it. An axis of
 * one element has any. */
bool fa_hopper_fill_map(fa_tensor_map *map, const fa_attention *a, const void *base, int64_t head_dim,
                        const fa_hopper_axis axes[3]);

/* ---- forward ---- */

/* Adds the launch of a call without flex. False, and nothing is added: no such kernel can do it; an unaligned
 * row, ALiBi from the top-left corner, scale <= 0 and strides <= 0 are beyond them, as are a bias that is one row for all rows, and
 * linear dropout of rows that have not their keys in fours. */
bool fa_hopper_add_forward(const fa_attention *a, const fa_kernel_device *device, fa_plan *out);

/* For a call with expressions or block lists, the kernel and its parameters in the plan, all but f.flex, whose
 * keys are to be lists for tiles of the kernel's size. NULL: there is none; softcap, ALiBi, dropout,
 * cu_seqlens, seqused_k and leftpad_k are beyond these kernels too. */
const fa_kernel *fa_hopper_flex_forward(const fa_attention *a, const fa_kernel_device *device, fa_plan *out,
                                        fa_hopper_params **params);
fa_launch *fa_hopper_launch_forward(const fa_kernel *k, const fa_kernel_device *device, fa_hopper_params *p,
                                    fa_plan *out);

/* ---- backward: the main kernel by keys, between the flash kernels before and after it ---- */

/* The one that would take main's place in a call by keys. NULL: none can. Of x, whose kernels are there. */
const fa_kernel *fa_hopper_main_by_keys(const fa_call *call, const fa_kernel_device *device,
                                        const fa_fast_backward *x);

/* Puts one for sm_90a in the place of `main`, where one can do the call; the launches around it share x's
 * parameters, of which some change. Beside what the forward kernels cannot, calls by queries and gradients of a
 * bias that are sums over rows are beyond them. Any scale will do. */
void fa_hopper_replace_main(const fa_call *call, const fa_kernel_device *device, fa_fast_backward *x,
                            fa_launch *main, fa_plan *out);

/* For a call with expressions or block lists: the kernel, the flash kernels around it, without their place in
 * the workspace, and its parameters in the plan, but for b. Those get x->params, with forward.flex, whose rows
 * are to be lists for tiles of the kernel's size, of a cluster's keys where it has clusters. NULL: there is none; bias,
 * softcap, ALiBi, dropout and a given delta are beyond these kernels, and gradients of captured buffers beyond those with clusters. */
const fa_kernel *fa_hopper_flex_backward(const fa_call *call, const fa_kernel_device *device,
                                         fa_fast_backward *x, fa_plan *out,
                                         fa_hopper_backward_params **params);
/* Makes *l that kernel's launch; x has its place. */
void fa_hopper_launch_backward(const fa_call *call, const fa_kernel *k, const fa_fast_backward *x,
                               fa_hopper_backward_params *p, fa_launch *l);

#endif
