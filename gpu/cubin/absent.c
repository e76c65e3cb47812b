/* Stands for the backend cubin in a build without the CUDA toolkit. */
#include "gpu/cuda_backend/absent.h"
#include "gpu/backends/plugin_backend.h"
#include "gpu/cubin/plan.h"

/* A malformed plan is found here too. */
static fa_status open_cubin(const char *arg, void **self, fa_error *err) {
  static fa_absent cubin = {.name = "cubin", .arithmetic = "recorded"};
  fa_cubin_plan plan;
  *self = NULL;
  if (!arg || !*arg) return fa_fail(err, FA_ERR_INPUT, "backend cubin needs a launch plan: cubin:PLAN.json");
  const fa_status status = fa_cubin_plan_load(arg, &plan, err);
  if (status != FA_OK) return status;
  fa_cubin_plan_free(&plan);
  *self = &cubin;
  return FA_OK;
}

const fa_backend fa_backend_cubin = {.name = "cubin",
                                     .what = "cubin:PLAN.json, compiled kernels and a launch plan",
                                     .open = open_cubin,
                                     .close = fa_absent_close,
                                     .describe = fa_absent_describe,
                                     .supports = fa_absent_supports,
                                     .profile = fa_absent_profile,
                                     .run = fa_absent_run};
