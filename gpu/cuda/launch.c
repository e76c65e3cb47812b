/* gpu/fa.h on the GPU. */
#include "gpu/cuda/driver.h"
#include "gpu/cuda/module.h"
#include "gpu/fa_check.h"
#include "gpu/fa_plan.h"
#include "gpu/fa_plan_backward.h"

#include <stdlib.h>

/* ---- check_device_data ---- */

/* A copy in host memory of n numbers on the device, once the stream has come to its end; NULL for NULL. */
static fa_status read_back(const fa_cuda_driver *d, const char *name, const int32_t *from, int64_t n,
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
  fa_status status = read_back(d, "reading cu_seqlens_q", a->cu_seqlens_q, a->batch + 1, stream, &cu_q, err);
  if (status == FA_OK)
    status = read_back(d, "reading cu_seqlens_k", a->cu_seqlens_k, a->batch + 1, stream, &cu_k, err);
  if (status == FA_OK)
    status = read_back(d, "reading seqused_k", a->seqused_k, a->batch, stream, &seqused, err);
  if (status == FA_OK)
    status = read_back(d, "reading leftpad_k", a->leftpad_k, a->batch, stream, &leftpad, err);
  if (status == FA_OK) status = fa_attention_check_lengths(a, cu_q, cu_k, seqused, leftpad, err);
  free(cu_q);
  free(cu_k);
  free(seqused);
  free(leftpad);
  return status;
}

/* ---- launches ---- */

static fa_status launch(const fa_cuda_driver *d, CUkernel kernel, const char *name, size_t shared_bytes,
                        const unsigned grid[3], unsigned n_threads, void *params, CUstream stream,
                        fa_error *err) {
  void *arguments[] = {params};
  const CUresult code = d->cuLaunchKernel((CUfunction)kernel, grid[0], grid[1], grid[2], n_threads, 1, 1,
                                          (unsigned)shared_bytes, stream, arguments, NULL);
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, code, name, err);
}

fa_status fa_forward(const fa_attention *a, void *workspace, size_t workspace_bytes, void *stream,
                     fa_error *err) {
  (void)workspace, (void)workspace_bytes; /* none is needed */
  fa_forward_plan plan;
  fa_cuda_device device;
  fa_status status = fa_forward_plan_make(a, NULL, &plan, err);
  if (status != FA_OK) return status;
  const fa_cuda_driver *d = fa_cuda_driver_get(err);
  if (!d) return FA_ERR_DEVICE;
  status = fa_cuda_device_current(d, &device, err);
  if (status == FA_OK && a->check_device_data) status = check_device_data(d, a, (CUstream)stream, err);
  if (status != FA_OK || plan.empty) return status;
  CUkernel kernel = NULL;
  status = fa_cuda_kernel(d, &device, plan.kernel->name, plan.kernel->shared_bytes, &kernel, err);
  if (status != FA_OK) return status;
  return launch(d, kernel, plan.kernel->name, plan.kernel->shared_bytes, plan.grid,
                (unsigned)plan.kernel->n_threads, &plan.params, (CUstream)stream, err);
}

static fa_status check_workspace(const fa_backward_plan *plan, const void *workspace, size_t bytes,
                                 fa_error *err) {
  if (bytes < plan->workspace_bytes)
    return fa_fail(err, FA_ERR_INPUT, "workspace_bytes = %zu: this call needs %zu (fa_backward_workspace)",
                   bytes, plan->workspace_bytes);
  if (plan->workspace_bytes && !workspace) return fa_fail(err, FA_ERR_INPUT, "workspace is NULL");
  if ((uintptr_t)workspace % 256 != 0)
    return fa_fail(err, FA_ERR_INPUT, "workspace = %p: not aligned to 256 bytes", workspace);
  return FA_OK;
}

fa_status fa_backward(const fa_attention *a, const fa_gradients *g, void *workspace, size_t workspace_bytes,
                      void *stream, fa_error *err) {
  fa_backward_plan plan;
  fa_cuda_device device;
  fa_status status = fa_backward_plan_make(a, g, NULL, FA_DETERMINISTIC_PROCESSORS, &plan, err);
  if (status == FA_OK) status = check_workspace(&plan, workspace, workspace_bytes, err);
  if (status != FA_OK) return status;
  fa_backward_plan_place(&plan, workspace);
  const fa_cuda_driver *d = fa_cuda_driver_get(err);
  if (!d) return FA_ERR_DEVICE;
  status = fa_cuda_device_current(d, &device, err);
  if (status == FA_OK && a->check_device_data) status = check_device_data(d, a, (CUstream)stream, err);
  /* all kernels are looked for before the first is launched */
  CUkernel kernel[FA_BACKWARD_LAUNCHES];
  for (int i = 0; status == FA_OK && i < plan.n_launches; ++i)
    status =
        fa_cuda_kernel(d, &device, plan.launch[i].kernel.name, plan.launch[i].shared_bytes, &kernel[i], err);
  for (int i = 0; status == FA_OK && i < plan.n_launches; ++i) {
    const fa_backward_launch *l = &plan.launch[i];
    status = launch(d, kernel[i], l->kernel.name, l->shared_bytes, l->grid, plan.n_threads, &plan.params,
                    (CUstream)stream, err);
  }
  return status;
}
