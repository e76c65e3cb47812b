/* From checked arguments to a launch of a kernel for sm_90a, where there is one that can do the call; what it
 * cannot do falls to the kernels of gpu/plan/forward.h. */
#ifndef FA_GPU_PLAN_HOPPER_H
#define FA_GPU_PLAN_HOPPER_H

#include "gpu/fa.h"
#include "gpu/plan/backward.h"
#include "gpu/kernels/registry/hopper_backward.h"
#include "gpu/kernels/registry/hopper_forward.h"

typedef struct fa_hopper_plan {
  const fa_kernel *kernel;
  fa_tensor_box box[4];    /* of q, k, v, o: what params' maps are to be made from */
  fa_hopper_params params; /* but for the maps; no counter */
  unsigned n_blocks;
} fa_hopper_plan;

/* For arguments that passed fa_forward_check and are not empty. False: no such kernel can do it; an
 * unaligned row, two of softcap, ALiBi and dropout, bias, scale <= 0 and strides <= 0 are beyond them. */
bool fa_hopper_plan_make(const fa_attention *a, const fa_kernel_device *device, fa_hopper_plan *out);

/* The same for a call with expressions or block lists: all but params.f.flex, whose keys are to be lists for
 * tiles of the kernel's size. Softcap, ALiBi, dropout, cu_seqlens, seqused_k and leftpad_k are beyond these
 * kernels too. */
bool fa_hopper_flex_make(const fa_attention *a, const fa_kernel_device *device, fa_hopper_plan *out);

/* The map of box[i]. */
fa_tensor_map *fa_hopper_map(fa_hopper_plan *plan, int i);

/* The main kernel of a backward call by keys, between the kernels before and after it that the plan has. */
enum { FA_HOPPER_BACKWARD_MAPS = 6, FA_HOPPER_BACKWARD_LAUNCH = 1 /* whose place it takes */ };
typedef struct fa_hopper_backward_plan {
  const fa_kernel *kernel;
  fa_tensor_box box[FA_HOPPER_BACKWARD_MAPS]; /* of q, k, v, d_o, dk, dv */
  fa_hopper_backward_params params;           /* but for the maps */
  unsigned cluster;                           /* blocks side by side in x that run together */
  unsigned grid[3];
} fa_hopper_backward_plan;

/* plan: of the same arguments, with its place in the workspace; the launches before and after the main one
 * take out->params.b then instead of the plan's. False: no such kernel can do it; beside what the forward
 * kernels cannot, head dims up to 32 and calls by queries are beyond them; and from 129 on dropout with
 * cu_seqlens, seqused_k or leftpad_k. Any scale will do. */
bool fa_hopper_backward_make(const fa_attention *a, const fa_gradients *g, const fa_backward_plan *plan,
                             const fa_kernel_device *device, fa_hopper_backward_plan *out);
fa_tensor_map *fa_hopper_backward_map(fa_hopper_backward_plan *plan, int i);

/* The same for a call with expressions or block lists: *around, without its place in the workspace, and *out.
 * Before the launches both get params.forward.flex, whose rows are to be lists for tiles of the kernel's
 * size; and out->params.b is around's params then. Bias, softcap, ALiBi, dropout, a given delta, cu_seqlens,
 * seqused_k and leftpad_k are beyond these kernels. */
bool fa_hopper_flex_backward_make(const fa_attention *a, const fa_gradients *g, const fa_kernel_device *device,
                                  fa_backward_plan *around, fa_hopper_backward_plan *out);

/* "flash_forward<...>" becomes "hopper_forward<...>", and "flex_forward" "hopper_flex_forward", for reports.
 */
void fa_hopper_rename(char *kernel, size_t size);

#endif
