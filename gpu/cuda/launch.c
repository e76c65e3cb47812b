/* gpu/fa.h on the GPU. */
#include "gpu/cuda/launch.h"

#include "gpu/cuda/launch_flex.h"
#include "gpu/cuda/launch_hopper.h"
#include "gpu/modules/kernel.h"
#include "gpu/call/check.h"
#include "gpu/plan/forward.h"
#include "gpu/plan/backward.h"
#include "gpu/plan/hopper.h"

#include <stdio.h>
#include <stdlib.h>

fa_status fa_describe(char *text, size_t size, fa_error *err) {
  fa_cuda_device device;
  char kernels[1600];
  if (size) text[0] = 0;
  const fa_cuda_driver *d = fa_cuda_driver_get(err);
  if (!d) return FA_ERR_DEVICE;
  fa_status status = fa_cuda_device_current(d, &device, err);
  if (status == FA_OK) status = fa_cuda_kernels_exist(&device, err);
  if (status != FA_OK) return status;
  fa_cuda_kernels_describe(&device, kernels, sizeof kernels);
  snprintf(text, size, "%s, sm_%d%d, CUDA %s; %s", device.name, device.major, device.minor, device.driver,
           kernels);
  return FA_OK;
}

/* ---- check_device_data ---- */

fa_status fa_cuda_read_back(const fa_cuda_driver *d, const char *name, const int32_t *from, int64_t n,
                            CUstream stream, int32_t **out, fa_error *err) {
  if (!from || n == 0) return FA_OK;
  *out = malloc((size_t)n * sizeof **out);
  if (!*out) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  CUresult code = d->cuMemcpyDtoHAsync(*out, (CUdeviceptr)from, (size_t)n * sizeof **out, stream);
  if (code == CUDA_SUCCESS) code = d->cuStreamSynchronize(stream);
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, code, name, err);
}

static fa_status check_device_data(const fa_cuda_driver *d, const fa_attention *a, CUstream stream,
                                   fa_error *err) {
  int32_t *cu_q = NULL, *cu_k = NULL, *seqused = NULL, *leftpad = NULL;
  fa_status status =
      fa_cuda_read_back(d, "reading cu_seqlens_q", a->cu_seqlens_q, a->batch + 1, stream, &cu_q, err);
  if (status == FA_OK)
    status = fa_cuda_read_back(d, "reading cu_seqlens_k", a->cu_seqlens_k, a->batch + 1, stream, &cu_k, err);
  if (status == FA_OK)
    status = fa_cuda_read_back(d, "reading seqused_k", a->seqused_k, a->batch, stream, &seqused, err);
  if (status == FA_OK)
    status = fa_cuda_read_back(d, "reading leftpad_k", a->leftpad_k, a->batch, stream, &leftpad, err);
  if (status == FA_OK) status = fa_attention_check_lengths(a, cu_q, cu_k, seqused, leftpad, err);
  free(cu_q);
  free(cu_k);
  free(seqused);
  free(leftpad);
  return status;
}

/* ---- launches ---- */

fa_status fa_cuda_launch(const fa_cuda_driver *d, CUkernel kernel, const char *name, size_t shared_bytes,
                         const unsigned grid[3], unsigned n_threads, const void *params, CUstream stream,
                         fa_error *err) {
  void *arguments[] = {(void *)params}; /* which the driver only reads */
  const CUresult code = d->cuLaunchKernel((CUfunction)kernel, grid[0], grid[1], grid[2], n_threads, 1, 1,
                                          (unsigned)shared_bytes, stream, arguments, NULL);
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, code, name, err);
}

fa_status fa_cuda_launch_overlapping(const fa_cuda_driver *d, CUkernel kernel, const char *name,
                                     size_t shared_bytes, const unsigned grid[3], unsigned n_threads,
                                     const void *params, CUstream stream, fa_error *err) {
  void *arguments[] = {(void *)params}; /* which the driver only reads */
  CUlaunchAttribute overlap = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
  overlap.value.programmaticStreamSerializationAllowed = 1;
  const CUlaunchConfig config = {.gridDimX = grid[0],
                                 .gridDimY = grid[1],
                                 .gridDimZ = grid[2],
                                 .blockDimX = n_threads,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .sharedMemBytes = (unsigned)shared_bytes,
                                 .hStream = stream,
                                 .attrs = &overlap,
                                 .numAttrs = 1};
  const CUresult code = d->cuLaunchKernelEx(&config, (CUfunction)kernel, arguments, NULL);
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, code, name, err);
}

/* The plan for this device, and its kernel. A kernel outside the list of the build that cannot be compiled
 * here gives way to a more general one. */
static fa_status plan_forward(const fa_cuda_driver *d, const fa_cuda_device *device, const fa_attention *a,
                              fa_forward_plan *plan, CUkernel *kernel, fa_error *err) {
  fa_kernel_device target;
  fa_status status = fa_cuda_kernel_device(device, &target, err);
  for (bool settled = false; status == FA_OK && !settled; target.compiles = 0) {
    status = fa_forward_plan_make(a, &target, plan, err);
    if (status != FA_OK || plan->empty) return status;
    const fa_kernel *k = plan->kernel;
    status = fa_cuda_kernel(d, device, k->name, &k->recipe, k->shared_bytes, kernel, err);
    settled = status != FA_ERR_UNSUPPORTED || k->recipe.is_ahead_of_time;
    if (!settled) status = FA_OK;
  }
  return status;
}

fa_status fa_forward(const fa_attention *a, void *workspace, size_t workspace_bytes, void *stream,
                     fa_error *err) {
  fa_forward_plan plan; /* flex calls alone need a workspace */
  fa_cuda_device device;
  CUkernel kernel = NULL;
  bool done = false;
  fa_status status = fa_forward_check(a, err); /* what is wrong is said where there is no device too */
  if (status != FA_OK) return status;
  const fa_cuda_driver *d = fa_cuda_driver_get(err);
  if (!d) return FA_ERR_DEVICE;
  status = fa_cuda_device_current(d, &device, err);
  if (status == FA_OK && a->check_device_data) status = check_device_data(d, a, (CUstream)stream, err);
  if (status == FA_OK && a->flex)
    return fa_cuda_flex_forward(d, &device, a, workspace, workspace_bytes, (CUstream)stream, err);
  if (status == FA_OK) status = fa_cuda_hopper_forward(d, &device, a, (CUstream)stream, &done, err);
  if (status != FA_OK || done) return status;
  status = plan_forward(d, &device, a, &plan, &kernel, err);
  if (status != FA_OK || plan.empty) return status;
  return fa_cuda_launch(d, kernel, plan.kernel->name, plan.kernel->shared_bytes, plan.grid,
                        (unsigned)plan.kernel->n_threads, &plan.params, (CUstream)stream, err);
}

fa_status fa_cuda_workspace_check(size_t needed, const char *who, const void *workspace, size_t bytes,
                                  fa_error *err) {
  if (bytes < needed)
    return fa_fail(err, FA_ERR_INPUT, "workspace_bytes = %zu: this call needs %zu (%s)", bytes, needed, who);
  if (needed && !workspace) return fa_fail(err, FA_ERR_INPUT, "workspace is NULL");
  if ((uintptr_t)workspace % 256 != 0)
    return fa_fail(err, FA_ERR_INPUT, "workspace = %p: not aligned to 256 bytes", workspace);
  return FA_OK;
}

/* As plan_forward. All kernels are looked for before the first is launched. */
static fa_status plan_backward(const fa_cuda_driver *d, const fa_cuda_device *device, const fa_attention *a,
                               const fa_gradients *g, fa_backward_plan *plan,
                               CUkernel kernel[FA_BACKWARD_LAUNCHES], fa_error *err) {
  fa_kernel_device target;
  fa_status status = fa_cuda_kernel_device(device, &target, err);
  for (bool settled = false; status == FA_OK && !settled; target.compiles = 0) {
    status = fa_backward_plan_make(a, g, &target, FA_DETERMINISTIC_PROCESSORS, plan, err);
    settled = true;
    for (int i = 0; status == FA_OK && settled && i < plan->n_launches; ++i) {
      const fa_backward_launch *l = &plan->launch[i];
      status = fa_cuda_kernel(d, device, l->kernel.name, &l->kernel.recipe, l->shared_bytes, &kernel[i], err);
      settled = status != FA_ERR_UNSUPPORTED || l->kernel.recipe.is_ahead_of_time;
      if (!settled) status = FA_OK;
    }
  }
  return status;
}

/* All launches of a plan that has its place. The main one may be another kernel's; what follows that waits
 * for it itself. */
static fa_status launch_backward(const fa_cuda_driver *d, const fa_cuda_device *device, const fa_attention *a,
                                 const fa_gradients *g, fa_backward_plan *plan,
                                 CUkernel kernel[FA_BACKWARD_LAUNCHES], CUstream stream, fa_error *err) {
  fa_hopper_backward_plan hopper;
  CUkernel main = NULL;
  fa_status status = fa_cuda_hopper_backward_find(d, device, a, g, plan, &hopper, &main, err);
  if (main) plan->params = hopper.params.b;
  for (int i = 0; status == FA_OK && i < plan->n_launches; ++i) {
    const fa_backward_launch *l = &plan->launch[i];
    if (main && i == FA_HOPPER_BACKWARD_LAUNCH)
      status = fa_cuda_hopper_backward(d, &hopper, main, stream, err);
    else
      status = fa_cuda_launch(d, kernel[i], l->kernel.name, l->shared_bytes, l->grid, l->n_threads,
                              fa_backward_plan_params(plan, i), stream, err);
  }
  return status;
}

fa_status fa_backward(const fa_attention *a, const fa_gradients *g, void *workspace, size_t workspace_bytes,
                      void *stream, fa_error *err) {
  fa_backward_plan plan;
  fa_cuda_device device;
  CUkernel kernel[FA_BACKWARD_LAUNCHES] = {NULL};
  size_t needed = 0;
  fa_status status = fa_backward_workspace(a, g, &needed, err);
  if (status == FA_OK)
    status = fa_cuda_workspace_check(needed, "fa_backward_workspace", workspace, workspace_bytes, err);
  if (status != FA_OK) return status;
  const fa_cuda_driver *d = fa_cuda_driver_get(err);
  if (!d) return FA_ERR_DEVICE;
  status = fa_cuda_device_current(d, &device, err);
  if (status == FA_OK && a->check_device_data) status = check_device_data(d, a, (CUstream)stream, err);
  if (status == FA_OK && a->flex)
    return fa_cuda_flex_backward(d, &device, a, g, workspace, workspace_bytes, (CUstream)stream, err);
  if (status == FA_OK) status = plan_backward(d, &device, a, g, &plan, kernel, err);
  if (status == FA_OK && plan.workspace_bytes > workspace_bytes)
    status = fa_fail(err, FA_ERR_UNSUPPORTED, "%s needs a larger workspace than was foreseen", device.name);
  if (status != FA_OK) return status;
  fa_backward_plan_place(&plan, workspace);
  return launch_backward(d, &device, a, g, &plan, kernel, (CUstream)stream, err);
}
