#include "gpu/cuda_backend/flex.h"

#include "gpu/args/problem.h"
#include "gpu/cuda/launch_flex.h"
#include "gpu/cuda/launch_hopper.h"
#include "gpu/driver/nvrtc.h"
#include "gpu/modules/rtc.h"
#include "gpu/plan/hopper.h"

#include <stdio.h>

size_t fa_cuda_flex_scratch(const fa_problem *p, const fa_tensors *host, unsigned passes) {
  fa_args_flex x;
  fa_attention a;
  fa_gradients g;
  size_t forward = 0, backward = 0;
  if (fa_args_flex_make(p, &x, NULL) != FA_OK) return 0;
  if (!fa_args_flex_tensors(p, host, &x, &a)) {
    if (fa_forward_workspace(&a, &forward, NULL) != FA_OK) forward = 0;
    if (!(passes & FA_PASS_BACKWARD) || fa_args_gradients(p, host, &g) ||
        fa_backward_workspace(&a, &g, &backward, NULL) != FA_OK)
      backward = 0;
  }
  fa_args_flex_free(&x);
  return forward > backward ? forward : backward;
}

static fa_status refuse(fa_outcome *out, const char *why) {
  out->state = FA_SUBJECT_REJECTED;
  snprintf(out->text, sizeof out->text, "%s", why);
  return FA_OK;
}

static fa_status name_forward(const fa_problem *p, const fa_attention *a, bool hopper, fa_outcome *out) {
  fa_flex_plan plan;
  fa_error refused = {""};
  if (fa_flex_forward_plan_make(a, NULL, NULL, NULL, &plan, &refused) != FA_OK)
    return refuse(out, refused.text);
  fa_args_name_kernel(p, plan.aligned, out->kernel, sizeof out->kernel);
  if (hopper) fa_hopper_rename(out->kernel, sizeof out->kernel);
  return FA_OK;
}

static fa_status launch(const fa_problem *p, const fa_attention *a, const fa_gradients *g,
                        const fa_cuda_tensors *t, unsigned passes, CUstream stream, fa_outcome *out,
                        fa_error *err) {
  fa_status status = FA_OK;
  fa_cuda_hopper_ran(); /* discards those of earlier calls */
  if (passes & FA_PASS_FORWARD) {
    status = fa_forward(a, fa_cuda_tensors_scratch(t), t->scratch_bytes, stream, err);
    if (status == FA_OK) name_forward(p, a, fa_cuda_hopper_ran(), out);
  }
  if (status == FA_OK && (passes & FA_PASS_BACKWARD)) {
    status = fa_backward(a, g, fa_cuda_tensors_scratch(t), t->scratch_bytes, stream, err);
    snprintf(out->backward_kernel, sizeof out->backward_kernel, "%s",
             fa_args_backward_name(a, g, fa_cuda_hopper_ran()));
  }
  if (status == FA_ERR_INPUT) return refuse(out, err->text);
  fa_rtc_policy policy;
  const bool can_compile =
      fa_rtc_policy_get(&policy, NULL) == FA_OK && policy != FA_RTC_OFF && fa_nvrtc_get(NULL, NULL);
  return status == FA_ERR_UNSUPPORTED && can_compile ? FA_ERR_DEVICE : status;
}

fa_status fa_cuda_flex_launch(const fa_cuda_device *device, const fa_problem *p, const fa_cuda_tensors *t,
                              unsigned passes, CUstream stream, fa_outcome *out, fa_error *err) {
  fa_args_flex x;
  fa_attention a;
  fa_gradients g;
  fa_status status = fa_args_flex_make(p, &x, err);
  if (status != FA_OK) return status;
  const char *why = fa_args_flex_tensors(p, &t->set, &x, &a);
  if (!why && (passes & FA_PASS_BACKWARD)) why = fa_args_gradients(p, &t->set, &g);
  status = why ? refuse(out, why) : name_forward(p, &a, fa_cuda_flex_is_hopper(device, &a, NULL), out);
  a.check_device_data = !stream;
  if (status == FA_OK && out->state == FA_SUBJECT_OK) status = launch(p, &a, &g, t, passes, stream, out, err);
  fa_args_flex_free(&x);
  return status;
}
