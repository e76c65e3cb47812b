/* Defaults of gpu/fa.h, and the checks on their own. */
#include "gpu/fa_check.h"
#include "gpu/fa_plan.h"
#include "gpu/fa_plan_backward.h"

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

fa_status fa_forward_check(const fa_attention *a, fa_error *err) {
  fa_forward_plan plan;
  return fa_forward_plan_make(a, NULL, &plan, err);
}

fa_status fa_forward_workspace(const fa_attention *a, size_t *bytes, fa_error *err) {
  *bytes = 0; /* all of it happens in registers and shared memory */
  return fa_forward_check(a, err);
}

fa_status fa_backward_check(const fa_attention *a, const fa_gradients *g, fa_error *err) {
  fa_backward_plan plan;
  return fa_backward_plan_make(a, g, NULL, FA_DETERMINISTIC_PROCESSORS, &plan, err);
}

fa_flash_device fa_device_like(int i) {
  static const size_t shared_bytes[] = {SIZE_MAX, 163 << 10, 99 << 10}; /* sm_90, sm_80, sm_86 */
  return (fa_flash_device){.max_shared_bytes = shared_bytes[i / 2], .compiles = i % 2};
}

fa_status fa_backward_workspace(const fa_attention *a, const fa_gradients *g, size_t *bytes, fa_error *err) {
  *bytes = 0;
  const fa_status status = fa_backward_check(a, g, err);
  for (int i = 0; status == FA_OK && i < FA_N_DEVICES_LIKE; ++i) {
    const fa_flash_device device = fa_device_like(i);
    fa_backward_plan plan;
    if (fa_backward_plan_make(a, g, &device, FA_DETERMINISTIC_PROCESSORS, &plan, NULL) == FA_OK &&
        plan.workspace_bytes > *bytes)
      *bytes = plan.workspace_bytes;
  }
  return status;
}
