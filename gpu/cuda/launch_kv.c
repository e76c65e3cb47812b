/* fa_forward_kvcache of gpu/fa.h on the GPU. */
#include "gpu/cuda/launch.h"
#include "gpu/modules/kernel.h"
#include "gpu/call/check_cache.h"
#include "gpu/plan/cache.h"

#include <stdlib.h>

/* The used pages of every entry, [batch][max_pages]; those past an entry's keys may not even be readable. */
static fa_status read_table(const fa_cuda_driver *d, const fa_attention *a, const fa_inference *kv,
                            const int32_t *seqlens, CUstream stream, int32_t **out, fa_error *err) {
  CUresult code = CUDA_SUCCESS;
  if (!kv->block_table || a->batch * kv->max_pages == 0) return FA_OK;
  *out = calloc((size_t)(a->batch * kv->max_pages), sizeof **out);
  if (!*out) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int64_t b = 0; code == CUDA_SUCCESS && b < a->batch; ++b) {
    int64_t n = (seqlens[b] + kv->n_new + kv->page_size - 1) / kv->page_size;
    if (n > kv->max_pages) n = kv->max_pages; /* which the check will say */
    if (n > 0)
      code = d->cuMemcpyDtoHAsync(*out + b * kv->max_pages,
                                  (CUdeviceptr)(kv->block_table + b * kv->block_table_stride),
                                  (size_t)n * sizeof **out, stream);
  }
  const CUresult ended = d->cuStreamSynchronize(stream); /* nobody may still write to what is freed */
  if (code == CUDA_SUCCESS) code = ended;
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, code, "reading block_table", err);
}

static fa_status check_cache_data(const fa_cuda_driver *d, const fa_attention *a, const fa_inference *kv,
                                  CUstream stream, fa_error *err) {
  int32_t *seqlens = NULL, *idx = NULL, *leftpad = NULL, *table = NULL;
  if (a->batch == 0) return FA_OK;
  fa_status status =
      fa_cuda_read_back(d, "reading cache_seqlens", kv->cache_seqlens, a->batch, stream, &seqlens, err);
  if (status == FA_OK)
    status =
        fa_cuda_read_back(d, "reading cache_batch_idx", kv->cache_batch_idx, a->batch, stream, &idx, err);
  if (status == FA_OK)
    status = fa_cuda_read_back(d, "reading leftpad_k", a->leftpad_k, a->batch, stream, &leftpad, err);
  if (status == FA_OK) status = read_table(d, a, kv, seqlens, stream, &table, err);
  const fa_cache_contents contents = {
      .cache_seqlens = seqlens, .cache_batch_idx = idx, .leftpad_k = leftpad, .block_table = table};
  if (status == FA_OK) status = fa_cache_check_contents(a, kv, &contents, err);
  free(seqlens);
  free(idx);
  free(leftpad);
  free(table);
  return status;
}

/* As plan_forward in launch.c. All kernels are looked for before the first is launched. */
static fa_status plan_cache(const fa_cuda_driver *d, const fa_cuda_device *device, const fa_attention *a,
                            const fa_inference *kv, fa_cache_plan *plan, CUkernel kernel[FA_CACHE_LAUNCHES],
                            fa_error *err) {
  fa_kernel_device target;
  fa_status status = fa_cuda_kernel_device(device, &target, err);
  for (bool settled = false; status == FA_OK && !settled; target.compiles = 0) {
    status = fa_cache_plan_make(a, kv, &target, FA_CACHE_PROCESSORS, plan, err);
    settled = true;
    for (int i = 0; status == FA_OK && settled && i < plan->n_launches; ++i) {
      const fa_cache_launch *l = &plan->launch[i];
      status = fa_cuda_kernel(d, device, l->kernel.name, &l->kernel.recipe, l->shared_bytes, &kernel[i], err);
      settled = status != FA_ERR_UNSUPPORTED || l->kernel.recipe.is_ahead_of_time;
      if (!settled) status = FA_OK;
    }
  }
  return status;
}

static fa_status check_workspace(const fa_cache_plan *plan, const void *workspace, size_t bytes, fa_error *err) {
  return fa_cuda_workspace_check(plan->workspace_bytes, "fa_forward_kvcache_workspace", workspace, bytes,
                                 err);
}

fa_status fa_forward_kvcache(const fa_attention *a, const fa_inference *kv, void *workspace,
                             size_t workspace_bytes, void *stream, fa_error *err) {
  fa_cache_plan plan;
  fa_cuda_device device;
  CUkernel kernel[FA_CACHE_LAUNCHES] = {NULL};
  /* What is wrong is said where there is no device too. */
  fa_status status = fa_cache_plan_make(a, kv, NULL, FA_CACHE_PROCESSORS, &plan, err);
  if (status == FA_OK) status = check_workspace(&plan, workspace, workspace_bytes, err);
  if (status != FA_OK) return status;
  const fa_cuda_driver *d = fa_cuda_driver_get(err);
  if (!d) return FA_ERR_DEVICE;
  status = fa_cuda_device_current(d, &device, err);
  if (status == FA_OK && a->check_device_data) status = check_cache_data(d, a, kv, (CUstream)stream, err);
  if (status == FA_OK) status = plan_cache(d, &device, a, kv, &plan, kernel, err);
  if (status == FA_OK) status = check_workspace(&plan, workspace, workspace_bytes, err);
  if (status != FA_OK) return status;
  fa_cache_plan_place(&plan, workspace);
  for (int i = 0; status == FA_OK && i < plan.n_launches; ++i) {
    const fa_cache_launch *l = &plan.launch[i];
    status = (l->overlaps && device.major >= 9 ? fa_cuda_launch_overlapping : fa_cuda_launch)(
        d, kernel[i], l->kernel.name, l->shared_bytes, l->grid, l->n_threads, fa_cache_plan_params(&plan, i),
        (CUstream)stream, err);
  }
  return status;
}
