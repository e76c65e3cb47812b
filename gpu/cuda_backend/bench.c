#include "gpu/cuda_backend/bench.h"

#include "gpu/args/problem.h"
#include "gpu/cuda_backend/context.h"
#include "gpu/cuda/launch_flex.h"
#include "gpu/cuda/launch_hopper.h"
#include "gpu/cuda_backend/memory.h"
#include "gpu/plan/cache.h"
#include "gpu/plan/forward.h"
#include "gpu/plan/hopper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RUNS = 10000, FEW_RUNS = 5 };
static const double enough_us = 1e6; /* total time after which no more runs are made, nor warm-up runs */

typedef struct bench {
  const fa_bench_options *opt;
  const fa_cuda_driver *d;
  fa_attention a;
  fa_gradients g;
  fa_inference kv;
  fa_args_flex flex;
  bool over_cache;
  void *workspace;
  size_t workspace_bytes;
  CUdeviceptr flush; /* cold: written before every run */
  size_t flush_bytes;
  CUevent begin, end;
} bench;

static fa_status enqueue(bench *b, bool backward, fa_error *err) {
  if (b->over_cache) return fa_forward_kvcache(&b->a, &b->kv, b->workspace, b->workspace_bytes, NULL, err);
  return backward ? fa_backward(&b->a, &b->g, b->workspace, b->workspace_bytes, NULL, err)
                  : fa_forward(&b->a, b->workspace, b->workspace_bytes, NULL, err);
}

/* One run between two events, in microseconds. */
static fa_status time_once(bench *b, double *us, fa_error *err) {
  float ms = 0;
  CUresult code = CUDA_SUCCESS;
  if (b->flush) code = b->d->cuMemsetD8Async(b->flush, 0x5a, b->flush_bytes, NULL);
  if (code == CUDA_SUCCESS) code = b->d->cuEventRecord(b->begin, NULL);
  if (code != CUDA_SUCCESS) return fa_cuda_fail(b->d, code, "timing", err);
  const fa_status status = enqueue(b, b->opt->backward, err);
  if (status != FA_OK) return status;
  code = b->d->cuEventRecord(b->end, NULL);
  if (code == CUDA_SUCCESS) code = b->d->cuEventSynchronize(b->end);
  if (code == CUDA_SUCCESS) code = b->d->cuEventElapsedTime(&ms, b->begin, b->end);
  *us = 1000.0 * ms;
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(b->d, code, "timing", err);
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static fa_status time_all(bench *b, fa_bench_result *out, fa_error *err) {
  const int most = b->opt->n_runs < 1 ? 1 : b->opt->n_runs > MAX_RUNS ? MAX_RUNS : b->opt->n_runs;
  double *us = calloc((size_t)most, sizeof *us), all = 0;
  int n = 0;
  if (!us) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_status status = b->opt->backward ? enqueue(b, false, err) : FA_OK; /* its o and lse are inputs */
  for (int i = 0; status == FA_OK && i < b->opt->n_warm && all < enough_us; ++i) {
    status = time_once(b, us, err);
    all += us[0];
  }
  for (all = 0; status == FA_OK && n < most && (n < FEW_RUNS || all < enough_us); all += us[n++])
    status = time_once(b, &us[n], err);
  if (status == FA_OK) {
    qsort(us, (size_t)n, sizeof *us, by_value);
    out->n_runs = n;
    out->min_us = us[0];
    out->max_us = us[n - 1];
    out->median_us = n % 2 ? us[n / 2] : (us[n / 2 - 1] + us[n / 2]) / 2;
  }
  free(us);
  return status;
}

/* Also what the forward needs that precedes a backward call. */
static fa_status workspace_needed(const bench *b, size_t *bytes, fa_error *err) {
  size_t backward = 0;
  if (b->over_cache) return fa_forward_kvcache_workspace(&b->a, &b->kv, bytes, err);
  fa_status status = fa_forward_workspace(&b->a, bytes, err);
  if (status == FA_OK && b->opt->backward) status = fa_backward_workspace(&b->a, &b->g, &backward, err);
  if (backward > *bytes) *bytes = backward;
  return status;
}

/* Allocates scratch memory, events, and the memory that flushes the cache. */
static fa_status prepare(bench *b, const fa_cuda_device *device, fa_error *err) {
  fa_status status = workspace_needed(b, &b->workspace_bytes, err);
  if (status != FA_OK) return status;
  CUdeviceptr workspace = 0;
  CUresult code = b->workspace_bytes ? b->d->cuMemAlloc(&workspace, b->workspace_bytes) : CUDA_SUCCESS;
  if (code == CUDA_SUCCESS) {
    b->workspace = (void *)workspace;
    if (b->opt->cold) {
      b->flush_bytes = 2 * (size_t)(device->l2_bytes > 0 ? device->l2_bytes : 64 << 20);
      code = b->d->cuMemAlloc(&b->flush, b->flush_bytes);
      if (code != CUDA_SUCCESS) b->flush = 0;
    }
  }
  if (code == CUDA_SUCCESS) code = b->d->cuEventCreate(&b->begin, CU_EVENT_DEFAULT);
  if (code == CUDA_SUCCESS) code = b->d->cuEventCreate(&b->end, CU_EVENT_DEFAULT);
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(b->d, code, "preparing to time", err);
}

static void release(bench *b) {
  if (b->workspace) b->d->cuMemFree((CUdeviceptr)b->workspace);
  if (b->flush) b->d->cuMemFree(b->flush);
  if (b->begin) b->d->cuEventDestroy(b->begin);
  if (b->end) b->d->cuEventDestroy(b->end);
}

/* Sets the call's arguments from the problem and its tensors on the device, and the kernel's name. */
static fa_status take_arguments(bench *b, const fa_problem *p, const fa_tensors *device, fa_error *err) {
  const char *why;
  b->over_cache = p->family == FA_KVCACHE;
  if (b->over_cache)
    why = fa_args_cache_tensors(p, device, &b->a, &b->kv);
  else if (p->family == FA_FLEX)
    why = fa_args_flex_tensors(p, device, &b->flex, &b->a);
  else
    why = fa_args_tensors(p, device, &b->a);
  if (!why && b->opt->backward) why = fa_args_gradients(p, device, &b->g);
  return why ? fa_fail(err, FA_ERR_UNSUPPORTED, "%s", why) : FA_OK;
}

static fa_status name_kernel(const bench *b, const fa_problem *p, const fa_cuda_device *device, char *name,
                             size_t size, fa_error *err) {
  fa_forward_plan plan;
  fa_cache_plan over_cache;
  fa_flex_plan flex;
  bool hopper = false, aligned = false;
  fa_status status;
  if (b->over_cache) {
    status = fa_cache_plan_make(&b->a, &b->kv, NULL, FA_CACHE_PROCESSORS, &over_cache, err);
    if (status == FA_OK) aligned = over_cache.aligned;
  } else if (b->a.flex) {
    status = fa_flex_forward_plan_make(&b->a, NULL, NULL, NULL, &flex, err);
    if (status == FA_OK) aligned = flex.aligned;
    hopper = status == FA_OK && fa_cuda_flex_is_hopper(device, &b->a, b->opt->backward ? &b->g : NULL);
  } else {
    status = fa_forward_plan_make(&b->a, NULL, &plan, err);
    if (status == FA_OK) aligned = plan.aligned;
    hopper = status == FA_OK && fa_cuda_hopper_is_chosen(device, &b->a);
  }
  if (status == FA_OK) fa_args_name_kernel(p, aligned, name, size);
  if (hopper) fa_hopper_rename(name, size);
  return status;
}

static fa_status bench_on(const fa_cuda_context *c, const fa_problem *p, const fa_tensors *device,
                          const fa_bench_options *opt, fa_bench_result *out, fa_error *err) {
  bench b = {.opt = opt, .d = c->driver};
  fa_status status = fa_args_flex_make(p, &b.flex, err); /* no-op for other families */
  if (status == FA_OK) status = take_arguments(&b, p, device, err);
  if (status == FA_OK) status = name_kernel(&b, p, &c->device, out->kernel, sizeof out->kernel, err);
  if (status == FA_OK) status = prepare(&b, &c->device, err);
  if (status == FA_OK) status = time_all(&b, out, err);
  release(&b);
  fa_args_flex_free(&b.flex);
  return status;
}

fa_status fa_cuda_bench(const fa_problem *p, const fa_tensors *t, const fa_bench_options *opt,
                        fa_bench_result *out, fa_error *err) {
  fa_cuda_context context;
  fa_cuda_arena arena = {0};
  fa_cuda_tensors on_device;
  CUresult code;
  memset(out, 0, sizeof *out);
  fa_status status = fa_cuda_context_open(opt->device, &context, err);
  if (status != FA_OK) return status;
  snprintf(out->device, sizeof out->device, "%s", context.device.name);
  snprintf(out->driver, sizeof out->driver, "%s", context.device.driver);
  status = fa_cuda_tensors_up(context.driver, &arena, t, 0, &on_device, &code, err);
  if (status == FA_OK) {
    status = bench_on(&context, p, &on_device.set, opt, out, err);
    fa_cuda_tensors_free(context.driver, &on_device);
  }
  fa_cuda_arena_free(context.driver, &arena);
  fa_cuda_context_close(&context);
  return status;
}
