#include "gpu/cuda_backend/bench.h"

#include "gpu/args/calls.h"
#include "gpu/cuda/run.h"
#include "gpu/cuda_backend/context.h"
#include "gpu/cuda_backend/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RUNS = 10000, FEW_RUNS = 5 };
static const double enough_us = 1e6; /* total time after which no more runs are made, nor warm-up runs */

typedef struct bench {
  const fa_bench_options *opt;
  const fa_cuda_driver *d;
  fa_args args;
  fa_cuda_ran forward; /* what the last forward call was planned as */
  size_t workspace_bytes;
  CUdeviceptr workspace;
  CUdeviceptr flush; /* cold: written before every run */
  size_t flush_bytes;
  CUevent begin, end;
} bench;

static fa_status enqueue(bench *b, bool backward, fa_error *err) {
  fa_call *call = backward ? &b->args.backward : &b->args.forward;
  call->workspace = (void *)b->workspace;
  return fa_cuda_run(call, b->workspace_bytes, NULL, backward ? NULL : &b->forward, err);
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
  const fa_args *x = &b->args;
  size_t backward = 0;
  if (x->forward.cache) return fa_forward_kvcache_workspace(&x->a, &x->cache, bytes, err);
  fa_status status = fa_forward_workspace(&x->a, bytes, err);
  if (status == FA_OK && b->opt->backward) status = fa_backward_workspace(&x->a, &x->g, &backward, err);
  if (backward > *bytes) *bytes = backward;
  return status;
}

/* Allocates scratch memory, events, and the memory that flushes the cache. */
static fa_status prepare(bench *b, const fa_cuda_device *device, fa_error *err) {
  fa_status status = workspace_needed(b, &b->workspace_bytes, err);
  if (status != FA_OK) return status;
  CUresult code = b->workspace_bytes ? b->d->cuMemAlloc(&b->workspace, b->workspace_bytes) : CUDA_SUCCESS;
  if (code != CUDA_SUCCESS) b->workspace = 0;
  if (code == CUDA_SUCCESS && b->opt->cold) {
    b->flush_bytes = 2 * (size_t)(device->l2_bytes > 0 ? device->l2_bytes : 64 << 20);
    code = b->d->cuMemAlloc(&b->flush, b->flush_bytes);
    if (code != CUDA_SUCCESS) b->flush = 0;
  }
  if (code == CUDA_SUCCESS) code = b->d->cuEventCreate(&b->begin, CU_EVENT_DEFAULT);
  if (code == CUDA_SUCCESS) code = b->d->cuEventCreate(&b->end, CU_EVENT_DEFAULT);
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(b->d, code, "preparing to time", err);
}

static void release(bench *b) {
  if (b->workspace) b->d->cuMemFree(b->workspace);
  if (b->flush) b->d->cuMemFree(b->flush);
  if (b->begin) b->d->cuEventDestroy(b->begin);
  if (b->end) b->d->cuEventDestroy(b->end);
}

static fa_status bench_on(const fa_cuda_context *c, const fa_problem *p, const fa_tensors *device,
                          const fa_bench_options *opt, fa_bench_result *out, fa_error *err) {
  bench b = {.opt = opt, .d = c->driver};
  const char *why = NULL;
  fa_status status = fa_args_make(p, device, opt->backward, FA_PLAN_PROCESSORS, &b.args, &why, err);
  if (why) status = fa_fail(err, FA_ERR_UNSUPPORTED, "%s", why);
  if (status == FA_OK) status = prepare(&b, &c->device, err);
  if (status == FA_OK) status = time_all(&b, out, err);
  if (status == FA_OK) fa_args_name(p, b.forward.name, b.forward.aligned, out->kernel, sizeof out->kernel);
  release(&b);
  fa_args_free(&b.args);
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
