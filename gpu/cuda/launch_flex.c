#include "gpu/cuda/launch_flex.h"

#include "gpu/cuda/launch.h"
#include "gpu/cuda/launch_hopper.h"
#include "gpu/modules/kernel.h"
#include "gpu/modules/flex.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)FA_CUDA_FLEX_WANTED >= (int)FA_FLEX_LAUNCHES, "all of a plan are asked for at once");

/* A forward call, a backward one (g), or one for lists of blocks. */
typedef struct flex_call {
  const fa_attention *a;
  const fa_gradients *g;
  const fa_flex_block_lists *lists;
  const char *who; /* says how large a workspace is needed */
  void *workspace;
  size_t workspace_bytes;
} flex_call;

static fa_status make_plan(const flex_call *c, const fa_kernel_device *target, fa_flex_plan *plan,
                           fa_error *err) {
  fa_status status;
  if (c->lists)
    status = fa_flex_blocks_plan_make(c->a, c->lists, NULL, c->workspace, plan, err);
  else if (c->g)
    status = fa_flex_backward_plan_make(c->a, c->g, target, NULL, c->workspace, plan, err);
  else
    status = fa_flex_forward_plan_make(c->a, target, NULL, c->workspace, plan, err);
  if (status != FA_OK) return status;
  return fa_cuda_workspace_check(plan->workspace_bytes, c->who, c->workspace, c->workspace_bytes, err);
}

/* ---- check_device_data ---- */

static fa_status check_lists(const fa_cuda_driver *d, const fa_attention *a, CUstream stream, fa_error *err) {
  const fa_flex *f = a->flex;
  const int64_t counts = f->list_batch * f->list_heads * fa_flex_n_q(a), n = counts * fa_flex_n_kv(a);
  const struct {
    const char *name;
    const int32_t *data;
    int64_t n;
  } from[4] = {{"reading kv_num_blocks", f->kv_num_blocks, counts},
               {"reading kv_indices", f->kv_indices, n},
               {"reading full_kv_num_blocks", f->full_kv_num_blocks, counts},
               {"reading full_kv_indices", f->full_kv_indices, n}};
  int32_t *lists[4] = {NULL};
  fa_status status = FA_OK;
  for (int i = 0; i < 4 && status == FA_OK; ++i)
    status = fa_cuda_read_back(d, from[i].name, from[i].data, from[i].n, stream, &lists[i], err);
  if (status == FA_OK) status = fa_flex_check_lists(a, lists[0], lists[1], lists[2], lists[3], err);
  for (int i = 0; i < 4; ++i) free(lists[i]);
  return status;
}

/* ---- kernels ---- */

static fa_cuda_flex_wanted wanted_of(const flex_call *c, const fa_flex_plan *plan, const fa_flex_launch *l) {
  fa_cuda_flex_wanted w = {.name = l->kernel.name,
                           .recipe = &l->kernel.recipe,
                           .shared_bytes = l->shared_bytes,
                           .unit = {.source = l->kernel.recipe.source,
                                    .program = c->a->flex->program,
                                    .has_score = l->params_kind != FA_FLEX_PARAMS_LISTS,
                                    .has_slope = l->has_slope,
                                    .speed = c->a->dtype == FA_F32 ? FA_EXPR_ACCURATE : FA_EXPR_FAST}};
  memcpy(w.unit.wanted, plan->wanted, sizeof w.unit.wanted);
  return w;
}

/* Every kernel of the plan, before the first is launched. */
static fa_status find_kernels(const fa_cuda_driver *d, const fa_cuda_device *device, const flex_call *c,
                              const fa_flex_plan *plan, CUkernel kernel[FA_FLEX_LAUNCHES], CUstream stream,
                              fa_error *err) {
  fa_cuda_flex_wanted wanted[FA_FLEX_LAUNCHES];
  int at[FA_FLEX_LAUNCHES], n = 0;
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < plan->n_launches; ++i) {
    const fa_flex_launch *l = &plan->launch[i];
    if (l->has_mods) {
      at[n] = i;
      wanted[n++] = wanted_of(c, plan, l);
    } else {
      status = fa_cuda_kernel(d, device, l->kernel.name, &l->kernel.recipe, l->shared_bytes, &kernel[i], err);
    }
  }
  if (status == FA_OK) status = fa_cuda_flex_kernels(d, device, wanted, n, stream, err);
  for (int i = 0; status == FA_OK && i < n; ++i) kernel[at[i]] = wanted[i].kernel;
  return status;
}

/* FA_ERR_UNSUPPORTED: the driver takes no such maps. */
static fa_status make_maps(const fa_cuda_driver *d, fa_flex_plan *plan, fa_error *err) {
  for (int i = 0; i < plan->n_launches; ++i) {
    fa_flex_launch *l = &plan->launch[i];
    fa_tensor_map *maps = (fa_tensor_map *)&l->params;
    for (int k = 0; k < l->n_maps; ++k)
      if (fa_cuda_hopper_encode(d, &l->box[k], &maps[k]) != CUDA_SUCCESS)
        return fa_fail(err, FA_ERR_UNSUPPORTED, "the driver makes no map of a tensor for %s", l->kernel.name);
  }
  return FA_OK;
}

/* Where kernels for sm_90a cannot be had, the portable ones do the work. */
static fa_status prepare(const fa_cuda_driver *d, const fa_cuda_device *device, const flex_call *c,
                         fa_flex_plan *plan, CUkernel kernel[FA_FLEX_LAUNCHES], CUstream stream,
                         fa_error *err) {
  fa_kernel_device target;
  fa_status status = fa_cuda_hopper_target(device, &target, err);
  for (bool settled = false; status == FA_OK && !settled; target.hopper = 0) {
    status = make_plan(c, &target, plan, err);
    if (status != FA_OK) return status;
    status = find_kernels(d, device, c, plan, kernel, stream, err);
    if (status == FA_OK) status = make_maps(d, plan, err);
    settled = status != FA_ERR_UNSUPPORTED || !plan->is_hopper;
    if (!settled) status = FA_OK;
  }
  return status;
}

static fa_status run(const fa_cuda_driver *d, const fa_cuda_device *device, const flex_call *c,
                     CUstream stream, fa_error *err) {
  fa_flex_plan plan;
  CUkernel kernel[FA_FLEX_LAUNCHES] = {NULL};
  fa_status status = FA_OK;
  if (c->a->check_device_data && !c->lists) status = check_lists(d, c->a, stream, err);
  if (status == FA_OK) status = prepare(d, device, c, &plan, kernel, stream, err);
  for (int i = 0; status == FA_OK && i < plan.n_launches; ++i) {
    fa_flex_launch *l = &plan.launch[i];
    if (l->params_kind == FA_FLEX_PARAMS_HOPPER) l->params.hopper.tiles.counter = fa_cuda_hopper_counter(d, stream);
    status = fa_cuda_launch(d, kernel[i], l->kernel.name, l->shared_bytes, l->grid, l->n_threads, &l->params,
                            stream, err);
  }
  if (status == FA_OK && plan.is_hopper) fa_cuda_hopper_note();
  return status;
}

/* ---- calls ---- */

fa_status fa_cuda_flex_forward(const fa_cuda_driver *d, const fa_cuda_device *device, const fa_attention *a,
                               void *workspace, size_t workspace_bytes, CUstream stream, fa_error *err) {
  const flex_call c = {
      .a = a, .who = "fa_forward_workspace", .workspace = workspace, .workspace_bytes = workspace_bytes};
  return run(d, device, &c, stream, err);
}

fa_status fa_cuda_flex_backward(const fa_cuda_driver *d, const fa_cuda_device *device, const fa_attention *a,
                                const fa_gradients *g, void *workspace, size_t workspace_bytes,
                                CUstream stream, fa_error *err) {
  const flex_call c = {.a = a,
                       .g = g,
                       .who = "fa_backward_workspace",
                       .workspace = workspace,
                       .workspace_bytes = workspace_bytes};
  return run(d, device, &c, stream, err);
}

fa_status fa_flex_blocks(const fa_attention *a, const fa_flex_block_lists *out, void *workspace,
                         size_t workspace_bytes, void *stream, fa_error *err) {
  fa_flex_plan plan;
  fa_cuda_device device;
  const flex_call c = {.a = a,
                       .lists = out,
                       .who = "fa_flex_blocks_workspace",
                       .workspace = workspace,
                       .workspace_bytes = workspace_bytes};
  if (!out) return fa_fail(err, FA_ERR_INPUT, "out is NULL");
  fa_status status = make_plan(&c, NULL, &plan, err); /* what is wrong is said where there is no device too */
  if (status != FA_OK) return status;
  const fa_cuda_driver *d = fa_cuda_driver_get(err);
  if (!d) return FA_ERR_DEVICE;
  status = fa_cuda_device_current(d, &device, err);
  return status == FA_OK ? run(d, &device, &c, (CUstream)stream, err) : status;
}

bool fa_cuda_flex_is_hopper(const fa_cuda_device *device, const fa_attention *a, const fa_gradients *g) {
  fa_kernel_device target;
  fa_flex_plan plan;
  if (fa_cuda_hopper_target(device, &target, NULL) != FA_OK) return false;
  const fa_status status = g ? fa_flex_backward_plan_make(a, g, &target, NULL, NULL, &plan, NULL)
                             : fa_flex_forward_plan_make(a, &target, NULL, NULL, &plan, NULL);
  return status == FA_OK && plan.is_hopper;
}
