/* Replaces the cuda backend and its benchmark in a build without the CUDA toolkit. */
#include "gpu/cuda_backend/absent.h"

#include "gpu/cuda_backend/bench.h"

#include <stdio.h>
#include <string.h>

static const char why[] = "this build was made without the CUDA toolkit";

fa_status fa_absent_refuse(fa_error *err) {
  return fa_fail(err, FA_ERR_UNSUPPORTED, "%s", why);
}

void fa_absent_close(void *self) {
  (void)self;
}

void fa_absent_describe(void *self, fa_backend_info *out) {
  memset(out, 0, sizeof *out);
  out->name = ((const fa_absent *)self)->name;
  snprintf(out->why_not, sizeof out->why_not, "%s", why);
}

unsigned fa_absent_supports(void *self, const fa_problem *p, char *reason, size_t reason_size) {
  (void)self, (void)p;
  snprintf(reason, reason_size, "%s", why);
  return FA_PASS_NONE;
}

void fa_absent_profile(void *self, const fa_problem *p, fa_profile *out) {
  *out = fa_profile_get(((const fa_absent *)self)->arithmetic, p->dtype);
}

fa_status fa_absent_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                        fa_outcome *out, fa_error *err) {
  (void)self, (void)p, (void)t, (void)opt, (void)out;
  return fa_absent_refuse(err);
}

static fa_status open_cuda(const char *arg, void **self, fa_error *err) {
  static fa_absent cuda = {.name = "cuda", .arithmetic = "mma-ampere"};
  (void)arg, (void)err;
  *self = &cuda;
  return FA_OK;
}

const fa_backend fa_backend_cuda = {.name = "cuda",
                                    .what = "the CUDA kernels on the GPU",
                                    .open = open_cuda,
                                    .close = fa_absent_close,
                                    .describe = fa_absent_describe,
                                    .supports = fa_absent_supports,
                                    .profile = fa_absent_profile,
                                    .run = fa_absent_run};

fa_status fa_cuda_bench(const fa_problem *p, const fa_tensors *t, const fa_bench_options *opt,
                        fa_bench_result *out, fa_error *err) {
  (void)p, (void)t, (void)opt, (void)out;
  return fa_absent_refuse(err);
}
