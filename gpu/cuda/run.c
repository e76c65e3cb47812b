#include "gpu/cuda/run.h"

#include "gpu/cuda/device_data.h"
#include "gpu/cuda/kept.h"
#include "gpu/cuda/target.h"
#include "gpu/kernels/params/hopper.h"
#include "gpu/modules/flex.h"
#include "gpu/modules/kernel.h"

#include <stdatomic.h>
#include <string.h>

_Static_assert((int)FA_CUDA_FLEX_WANTED >= (int)FA_PLAN_LAUNCHES, "all of a plan are asked for at once");

/* A call on its way. */
typedef struct run {
  const fa_cuda_driver *d;
  const fa_call *call;
  size_t workspace_bytes;
  CUstream stream;
  fa_cuda_device device;
  fa_kernel_device target;
  fa_cuda_ready *ready; /* where all that is launched is made, or was */
  unsigned generation;  /* before the driver was asked for anything */
} run;

/* ---- the plan ---- */

static fa_status check_workspace(const run *r, fa_error *err) {
  static const char *const who[] = {[FA_CALL_FORWARD] = "fa_forward_workspace",
                                    [FA_CALL_BACKWARD] = "fa_backward_workspace",
                                    [FA_CALL_CACHE] = "fa_forward_kvcache_workspace",
                                    [FA_CALL_BLOCKS] = "fa_flex_blocks_workspace"};
  const size_t needed = r->ready->plan.workspace_bytes;
  const void *workspace = r->call->workspace;
  if (needed == 0) return FA_OK;
  if (r->workspace_bytes < needed)
    return fa_fail(err, FA_ERR_INPUT, "workspace_bytes = %zu: this call needs %zu (%s)", r->workspace_bytes,
                   needed, who[r->call->kind]);
  if (!workspace) return fa_fail(err, FA_ERR_INPUT, "workspace is NULL");
  if ((uintptr_t)workspace % 256 != 0)
    return fa_fail(err, FA_ERR_INPUT, "workspace = %p: not aligned to 256 bytes", workspace);
  return FA_OK;
}

static fa_cuda_ran ran_as(const fa_plan *plan) {
  return (fa_cuda_ran){plan->name, plan->aligned};
}

static fa_status make_plan(run *r, const fa_kernel_device *target, fa_cuda_ran *ran, fa_error *err) {
  fa_status status = fa_plan_make(r->call, target, &r->ready->plan, err);
  if (status == FA_OK) status = check_workspace(r, err);
  if (status == FA_OK && ran) *ran = ran_as(&r->ready->plan);
  return status;
}

/* What is wrong with a call is said where there is no device too. */
static fa_status find_device(run *r, fa_error *err) {
  fa_error own;
  r->d = fa_cuda_driver_get(&own);
  fa_status status = r->d ? fa_cuda_device_current(r->d, &r->device, &own) : FA_ERR_DEVICE;
  if (status == FA_OK) status = fa_cuda_target(&r->device, &r->target, &own);
  if (status == FA_OK) return FA_OK;
  const fa_status wrong = make_plan(r, NULL, NULL, err);
  if (wrong != FA_OK) return wrong;
  if (err) *err = own;
  return status;
}

/* ---- kernels ---- */

static fa_cuda_flex_wanted wanted_of(const fa_call *c, const fa_launch *l) {
  fa_cuda_flex_wanted w = {.name = l->kernel.name,
                           .recipe = &l->kernel.recipe,
                           .shared_bytes = l->shared_bytes,
                           .unit = {.source = l->kernel.recipe.source,
                                    .program = c->a->flex ? c->a->flex->program : NULL,
                                    .has_score = l->mods != FA_MODS_MASK,
                                    .drops = l->mods != FA_MODS_MASK && c->a->dropout_p > 0,
                                    .has_slope = l->mods == FA_MODS_DERIVATIVE,
                                    .lacks = l->lacks,
                                    .speed = c->a->dtype == FA_F32 ? FA_EXPR_ACCURATE : FA_EXPR_FAST}};
  for (int k = 0; c->g && k < FA_FLEX_MAX_BUFFERS; ++k) w.unit.wanted[k] = c->g->dbuffer[k] != NULL;
  return w;
}

/* Those that are compiled for the call's expressions, all at once. */
static fa_status find_with_mods(run *r, fa_error *err) {
  fa_cuda_flex_wanted wanted[FA_PLAN_LAUNCHES];
  int at[FA_PLAN_LAUNCHES], n = 0;
  for (int i = 0; i < r->ready->plan.n_launches; ++i)
    if (r->ready->plan.launch[i].mods) {
      at[n] = i;
      wanted[n++] = wanted_of(r->call, &r->ready->plan.launch[i]);
    }
  const fa_status status = fa_cuda_flex_kernels(r->d, &r->device, wanted, n, r->stream, err);
  for (int i = 0; status == FA_OK && i < n; ++i) r->ready->kernel[at[i]] = wanted[i].kernel;
  return status;
}

/* Every kernel of the plan, before the first is launched. *failed: which is not to be had, if it is one. */
static fa_status find_kernels(run *r, const fa_launch **failed, fa_error *err) {
  bool has_mods = false;
  *failed = NULL;
  for (int i = 0; i < r->ready->plan.n_launches; ++i) {
    const fa_launch *l = &r->ready->plan.launch[i];
    has_mods |= l->mods != FA_MODS_NONE;
    if (l->mods) continue;
    const fa_status status = fa_cuda_kernel(r->d, &r->device, l->kernel.name, &l->kernel.recipe,
                                            l->shared_bytes, &r->ready->kernel[i], err);
    *failed = l;
    if (status != FA_OK) return status;
  }
  *failed = NULL;
  return has_mods ? find_with_mods(r, err) : FA_OK;
}

/* ---- maps and counters ---- */

/* Of the box that stands in its place. */
static CUresult encode(const fa_cuda_driver *d, fa_tensor_map *map) {
  static const CUtensorMapSwizzle swizzle[] = {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                               CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_32B};
  const cuuint32_t steps[4] = {1, 1, 1, 1};
  CUtensorMap made;
  fa_tensor_box x;
  _Static_assert(sizeof made == sizeof *map, "a kernel takes it as bytes");
  memcpy(&x, map, sizeof x);
  const CUresult code = d->cuTensorMapEncodeTiled(
      &made, x.bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4,
      (void *)(uintptr_t)x.base, x.size, x.bytes, x.box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle[x.swizzle], CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  memcpy(map, &made, sizeof made);
  return code;
}

/* FA_ERR_UNSUPPORTED: the driver takes no such maps. */
static fa_status make_maps(run *r, fa_error *err) {
  for (int i = 0; i < r->ready->plan.n_launches; ++i) {
    const fa_launch *l = &r->ready->plan.launch[i];
    fa_tensor_map *maps = l->params;
    for (int k = 0; k < l->n_maps; ++k)
      if (encode(r->d, &maps[k]) != CUDA_SUCCESS)
        return fa_fail(err, FA_ERR_UNSUPPORTED, "the driver makes no map of a tensor for %s", l->kernel.name);
  }
  return FA_OK;
}

/* The next of FA_HOPPER_COUNTERS counters, round and round: as many launches are never under way at once. A
 * graph may be replayed at any time, so what is captured gets none, -1. */
static int next_counter(const fa_cuda_driver *d, CUstream stream) {
  static atomic_uint n;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (d->cuStreamIsCapturing(stream, &capture) != CUDA_SUCCESS || capture != CU_STREAM_CAPTURE_STATUS_NONE)
    return -1;
  return (int)(atomic_fetch_add(&n, 1) % FA_HOPPER_COUNTERS);
}

/* ---- launches ---- */

static unsigned attributes_of(fa_cuda_together how, CUlaunchAttribute out[2]) {
  unsigned n = 0;
  if (how.overlaps) {
    out[n] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    out[n++].value.programmaticStreamSerializationAllowed = 1;
  }
  if (how.cluster > 1) {
    out[n] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    out[n].value.clusterDim.x = how.cluster;
    out[n].value.clusterDim.y = 1;
    out[n++].value.clusterDim.z = 1;
  }
  return n;
}

fa_status fa_cuda_launch(const fa_cuda_driver *d, CUkernel kernel, const char *name, size_t shared_bytes,
                         const unsigned grid[3], unsigned n_threads, fa_cuda_together how, const void *params,
                         CUstream stream, fa_error *err) {
  void *arguments[] = {(void *)params}; /* which the driver only reads */
  CUlaunchAttribute attributes[2];
  const unsigned n_attributes = attributes_of(how, attributes);
  const CUlaunchConfig config = {.gridDimX = grid[0],
                                 .gridDimY = grid[1],
                                 .gridDimZ = grid[2],
                                 .blockDimX = n_threads,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .sharedMemBytes = (unsigned)shared_bytes,
                                 .hStream = stream,
                                 .attrs = attributes,
                                 .numAttrs = n_attributes};
  const CUresult code = n_attributes
                            ? d->cuLaunchKernelEx(&config, (CUfunction)kernel, arguments, NULL)
                            : d->cuLaunchKernel((CUfunction)kernel, grid[0], grid[1], grid[2], n_threads, 1,
                                                1, (unsigned)shared_bytes, stream, arguments, NULL);
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, code, name, err);
}

static fa_cuda_together together_of(const fa_launch *l, int major) {
  return (fa_cuda_together){.overlaps = l->overlaps && major >= 9,
                            .cluster = l->kernel.recipe.any_cluster ? l->cluster : 0};
}

static fa_status launch_all(run *r, fa_error *err) {
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < r->ready->plan.n_launches; ++i) {
    const fa_launch *l = &r->ready->plan.launch[i];
    if (l->counter) *l->counter = next_counter(r->d, r->stream);
    status = fa_cuda_launch(r->d, r->ready->kernel[i], l->kernel.name, l->shared_bytes, l->grid, l->n_threads,
                            together_of(l, r->device.major), l->params, r->stream, err);
  }
  return status;
}

/* Where a kernel cannot be had, is there a more general one? It is what is planned for a device that has less:
 * no kernels for sm_90a, or none but those that were compiled ahead of time. */
static bool give_way(run *r, const fa_launch *failed) {
  if (r->ready->plan.is_hopper) {
    r->target.hopper = 0;
    return true;
  }
  if (!failed || failed->kernel.recipe.is_ahead_of_time || !r->target.compiles) return false;
  r->target.compiles = 0;
  return true;
}

/* All that is to be launched. A call is planned once, and again only where a kernel gives way. */
static fa_status prepare(run *r, fa_cuda_ran *ran, fa_error *err) {
  fa_error own;
  const fa_launch *failed = NULL;
  for (;;) {
    fa_status status = find_kernels(r, &failed, &own);
    if (status == FA_OK) status = make_maps(r, &own);
    if (status == FA_OK) return FA_OK;
    if (status != FA_ERR_UNSUPPORTED || !give_way(r, failed)) {
      if (err) *err = own;
      return status;
    }
    status = make_plan(r, &r->target, ran, err);
    if (status != FA_OK) return status;
  }
}

static fa_status make_ready(run *r, fa_cuda_ran *ran, fa_error *err) {
  fa_status status = make_plan(r, &r->target, ran, err);
  if (status == FA_OK && r->call->a && r->call->a->check_device_data)
    status = fa_cuda_check_device_data(r->d, r->call, r->stream, err);
  return status == FA_OK ? prepare(r, ran, err) : status;
}

/* Kernels that are compiled for expressions (softcap or ALiBi in some calls, too) may be unloaded later. */
static bool stays_loaded(const fa_plan *plan) {
  for (int i = 0; i < plan->n_launches; ++i)
    if (plan->launch[i].mods != FA_MODS_NONE) return false;
  return true;
}

/* By what the thread keeps, where it has made the same call before. */
static fa_status get_ready(run *r, fa_cuda_ran *ran, fa_error *err) {
  fa_cuda_asked asked = {.call = r->call,
                         .workspace_bytes = r->workspace_bytes,
                         .device = r->device.device,
                         .target = r->target,
                         .generation = r->generation};
  if (fa_rtc_policy_get(&asked.policy, err) != FA_OK) return FA_ERR_INPUT;
  bool is_there = false;
  fa_cuda_ready *const place = fa_cuda_kept_find(&asked, &is_there);
  if (place) r->ready = place;
  if (is_there && ran) *ran = ran_as(&place->plan);
  if (is_there) return FA_OK;
  const fa_status status = make_ready(r, ran, err);
  if (status == FA_OK && place && stays_loaded(&place->plan)) fa_cuda_kept_keep(place, &asked);
  return status;
}

fa_status fa_cuda_run(const fa_call *call, size_t workspace_bytes, CUstream stream, fa_cuda_ran *ran,
                      fa_error *err) {
  fa_cuda_ready own; /* large: nothing here is cleared */
  run r;
  r.call = call;
  r.workspace_bytes = workspace_bytes;
  r.stream = stream;
  r.ready = &own;
  r.generation = fa_cuda_generation();
  if (ran) *ran = (fa_cuda_ran){"", false};
  fa_status status = find_device(&r, err);
  if (status == FA_OK) status = get_ready(&r, ran, err);
  return status == FA_OK ? launch_all(&r, err) : status;
}
