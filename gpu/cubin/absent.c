/* Stands for the backend cubin in a build without the CUDA toolkit. */
#include "gpu/backends/plugin_backend.h"
#include "gpu/cubin/plan.h"

#include <stdio.h>
#include <string.h>

static const char why[] = "this build was made without the CUDA toolkit";

/* A malformed plan is found here too. */
static fa_status absent_open(const char *arg, void **self, fa_error *err) {
  fa_cubin_plan plan;
  *self = NULL;
  if (!arg || !*arg) return fa_fail(err, FA_ERR_INPUT, "backend cubin needs a launch plan: cubin:PLAN.json");
  const fa_status status = fa_cubin_plan_load(arg, &plan, err);
  if (status == FA_OK) fa_cubin_plan_free(&plan);
  return status;
}

static void absent_close(void *self) {
  (void)self;
}

static void absent_describe(void *self, fa_backend_info *out) {
  (void)self;
  memset(out, 0, sizeof *out);
  out->name = fa_backend_cubin.name;
  snprintf(out->why_not, sizeof out->why_not, "%s", why);
}

static unsigned absent_supports(void *self, const fa_problem *p, char *reason, size_t reason_size) {
  (void)self, (void)p;
  snprintf(reason, reason_size, "%s", why);
  return FA_PASS_NONE;
}

static void absent_profile(void *self, const fa_problem *p, fa_profile *out) {
  (void)self;
  *out = fa_profile_get("recorded", p->dtype);
}

static fa_status absent_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                            fa_outcome *out, fa_error *err) {
  (void)self, (void)p, (void)t, (void)opt, (void)out;
  return fa_fail(err, FA_ERR_UNSUPPORTED, "%s", why);
}

const fa_backend fa_backend_cubin = {.name = "cubin",
                                     .what = "cubin:PLAN.json, compiled kernels and a launch plan",
                                     .open = absent_open,
                                     .close = absent_close,
                                     .describe = absent_describe,
                                     .supports = absent_supports,
                                     .profile = absent_profile,
                                     .run = absent_run};
