/* Defaults of gpu/fa.h, and the checks on their own. */
#include "gpu/call/check.h"
#include "gpu/plan/forward.h"
#include "gpu/plan/backward.h"
#include "gpu/plan/flex.h"

#include <math.h>
#include <string.h>

void fa_attention_init(fa_attention *a) {
  memset(a, 0, sizeof *a);
  a->dtype = FA_F16;
  a->batch = a->heads_q = a->heads_kv = 1;
  a->scale = NAN; /* not set: there is no guessing it */
  a->window_left = a->window_right = -1;
  a->empty_lse = INFINITY;
}

void fa_gradients_init(fa_gradients *g) {
  memset(g, 0, sizeof *g);
}

fa_strides fa_strides_dense(int64_t rows, int64_t heads, int64_t head_dim) {
  return (fa_strides){rows * heads * head_dim, heads * head_dim, head_dim};
}

/* ---- what a device is asked for: bytes of workspace ---- */

/* Without flex all of it happens in registers and shared memory. */
static fa_status plan_forward(const fa_attention *a, const fa_kernel_device *device, size_t *bytes,
                              fa_error *err) {
  fa_forward_plan plan;
  fa_flex_plan flex;
  *bytes = 0;
  if (!a || !a->flex) return fa_forward_plan_make(a, device, &plan, err);
  const fa_status status = fa_flex_forward_plan_make(a, device, NULL, NULL, &flex, err);
  if (status == FA_OK) *bytes = flex.workspace_bytes;
  return status;
}

static fa_status plan_backward(const fa_attention *a, const fa_gradients *g, const fa_kernel_device *device,
                               size_t *bytes, fa_error *err) {
  fa_backward_plan plan;
  fa_flex_plan flex;
  *bytes = 0;
  if (a && a->flex) {
    const fa_status status = fa_flex_backward_plan_make(a, g, device, NULL, NULL, &flex, err);
    if (status == FA_OK) *bytes = flex.workspace_bytes;
    return status;
  }
  const fa_status status = fa_backward_plan_make(a, g, device, FA_DETERMINISTIC_PROCESSORS, &plan, err);
  if (status == FA_OK) *bytes = plan.workspace_bytes;
  return status;
}

fa_status fa_forward_check(const fa_attention *a, fa_error *err) {
  size_t bytes;
  return plan_forward(a, NULL, &bytes, err);
}

fa_status fa_backward_check(const fa_attention *a, const fa_gradients *g, fa_error *err) {
  size_t bytes;
  return plan_backward(a, g, NULL, &bytes, err);
}

fa_kernel_device fa_device_like(int i) {
  static const size_t shared_bytes[] = {SIZE_MAX, SIZE_MAX, 163 << 10, 99 << 10};
  static const int hopper[] = {FA_DETERMINISTIC_PROCESSORS, 0, 0, 0}; /* sm_90a, sm_90, sm_80, sm_86 */
  return (fa_kernel_device){
      .max_shared_bytes = shared_bytes[i / 2], .compiles = i % 2, .hopper = hopper[i / 2]};
}

fa_status fa_forward_workspace(const fa_attention *a, size_t *bytes, fa_error *err) {
  *bytes = 0;
  const fa_status status = fa_forward_check(a, err);
  for (int i = 0; status == FA_OK && i < FA_N_DEVICES_LIKE; ++i) {
    const fa_kernel_device device = fa_device_like(i);
    size_t needed;
    if (plan_forward(a, &device, &needed, NULL) == FA_OK && needed > *bytes) *bytes = needed;
  }
  return status;
}

fa_status fa_backward_workspace(const fa_attention *a, const fa_gradients *g, size_t *bytes, fa_error *err) {
  *bytes = 0;
  const fa_status status = fa_backward_check(a, g, err);
  for (int i = 0; status == FA_OK && i < FA_N_DEVICES_LIKE; ++i) {
    const fa_kernel_device device = fa_device_like(i);
    size_t needed;
    if (plan_backward(a, g, &device, &needed, NULL) == FA_OK && needed > *bytes) *bytes = needed;
  }
  return status;
}
