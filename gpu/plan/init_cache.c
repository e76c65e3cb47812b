/* Defaults of gpu/fa.h for a call over a cache, and the checks on their own. */
#include "gpu/plan/cache.h"
#include "gpu/plan/forward.h"

#include <string.h>

void fa_inference_init(fa_inference *kv) {
  memset(kv, 0, sizeof *kv);
}

fa_status fa_forward_kvcache_check(const fa_attention *a, const fa_inference *kv, fa_error *err) {
  fa_cache_plan plan;
  return fa_cache_plan_make(a, kv, NULL, FA_CACHE_PROCESSORS, &plan, err);
}

fa_status fa_forward_kvcache_workspace(const fa_attention *a, const fa_inference *kv, size_t *bytes,
                                       fa_error *err) {
  *bytes = 0;
  const fa_status status = fa_forward_kvcache_check(a, kv, err);
  for (int i = 0; status == FA_OK && i < FA_N_DEVICES_LIKE; ++i) {
    const fa_kernel_device device = fa_device_like(i);
    fa_cache_plan plan;
    if (fa_cache_plan_make(a, kv, &device, FA_CACHE_PROCESSORS, &plan, NULL) == FA_OK &&
        plan.workspace_bytes > *bytes)
      *bytes = plan.workspace_bytes;
  }
  return status;
}
