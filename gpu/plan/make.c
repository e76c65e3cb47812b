#include "gpu/plan/make.h"

#include "gpu/call/check.h"
#include "gpu/call/check_cache.h"
#include "gpu/call/check_merge.h"
#include "gpu/call/choose.h"
#include "gpu/plan/parts.h"

void *fa_plan_params(fa_plan *p, size_t bytes) {
  void *const at = p->params + p->params_bytes;
  p->params_bytes += (bytes + 63) / 64 * 64;
  FA_ASSERT(p->params_bytes <= sizeof p->params);
  return at;
}

void fa_plan_params_drop(fa_plan *p, size_t bytes) {
  p->params_bytes -= (bytes + 63) / 64 * 64;
}

void *fa_plan_reserve(fa_plan *p, const fa_call *call, int64_t bytes) {
  const size_t at = p->workspace_bytes;
  p->workspace_bytes += ((size_t)bytes + 255) / 256 * 256;
  return call->workspace ? (char *)call->workspace + at : NULL;
}

fa_launch *fa_plan_add(fa_plan *p, fa_kernel_entry kernel, int64_t x, int64_t y, int64_t z, int n_threads,
                       size_t shared_bytes, void *params) {
  FA_ASSERT(p->n_launches < FA_PLAN_LAUNCHES);
  fa_launch *l = &p->launch[p->n_launches];
  *l = (fa_launch){.kernel = kernel,
                   .grid = {(unsigned)x, (unsigned)y, (unsigned)z},
                   .n_threads = (unsigned)n_threads,
                   .shared_bytes = shared_bytes,
                   .params = params};
  if (x > 0 && y > 0 && z > 0) ++p->n_launches;
  return l;
}

/* Of the plan only what is said here: it is large, and decoding wants to be launched at once. */
static void clear(fa_plan *p) {
  p->n_launches = 0;
  p->workspace_bytes = p->params_bytes = 0;
  p->name = "";
  p->family = FA_PLAN_FLASH;
  p->aligned = p->is_hopper = p->adds_dq = p->adds_dkv = p->adds_dbias = false;
  p->block_m = p->block_n = 0;
  p->n_splits = 1;
}

/* Splits are kernels of their own: whoever asks for them is told what these do not take. */
bool fa_call_is_flex(const fa_call *call) {
  const fa_attention *a = call->a;
  if (a && a->e4m3) return false;
  if (call->kind == FA_CALL_BACKWARD) return a && call->g && fa_choose_flex(a, call->g);
  if (call->kind == FA_CALL_CACHE) return a && fa_cache_is_gathered(a) && fa_choose_flex(a, NULL);
  if (call->kind != FA_CALL_FORWARD || !a) return false;
  return a->flex || ((a->splits == 0 || a->splits == 1) && fa_choose_flex(a, NULL));
}

/* Calls for the flex kernels that have neither expressions nor block lists get a fa_flex of nothing. */
static fa_status plan_flex(const fa_call *call, const fa_kernel_device *device, fa_plan *out, fa_error *err) {
  fa_call own = *call;
  fa_attention a = *call->a;
  fa_flex nothing;
  fa_flex_init(&nothing);
  if (!a.flex) a.flex = &nothing;
  own.a = &a;
  return (call->kind == FA_CALL_BACKWARD ? fa_plan_flex_backward : fa_plan_flex_forward)(&own, device, out,
                                                                                         err);
}

fa_status fa_plan_any_forward(const fa_call *call, const fa_kernel_device *device, fa_plan *out,
                              fa_error *err) {
  return (fa_call_is_flex(call) ? plan_flex : fa_plan_forward)(call, device, out, err);
}

fa_status fa_plan_make(const fa_call *call, const fa_kernel_device *device, fa_plan *out, fa_error *err) {
  clear(out);
  switch (call->kind) {
  case FA_CALL_CACHE:
    return fa_plan_cache(call, device, out, err);
  case FA_CALL_MERGE:
  case FA_CALL_MERGE_BACKWARD:
    return fa_plan_merge(call, out, err);
  case FA_CALL_BLOCKS:
    return fa_plan_flex_blocks(call, out, err);
  case FA_CALL_BACKWARD:
    return (fa_call_is_flex(call) ? plan_flex : fa_plan_backward)(call, device, out, err);
  default:
    return fa_plan_any_forward(call, device, out, err);
  }
}

fa_status fa_any_forward_supported(const fa_call *call, const fa_kernel_device *device, fa_error *err) {
  return (fa_call_is_flex(call) ? fa_flex_forward_supported : fa_forward_supported)(call->a, device, err);
}

fa_status fa_plan_supported(const fa_call *call, const fa_kernel_device *device, fa_error *err) {
  const fa_attention *a = call->a;
  if (call->states) return fa_states_check_problem(call->states, err);
  const fa_status status = call->kind == FA_CALL_CACHE ? fa_cache_check_problem(a, call->cache, err)
                                                       : fa_attention_check_problem(a, err);
  if (status != FA_OK) return status;
  if (call->kind == FA_CALL_CACHE) return fa_cache_supported(a, call->cache, device, err);
  if (call->kind == FA_CALL_BACKWARD)
    return fa_call_is_flex(call) ? fa_flex_backward_supported(a, err)
                                 : fa_backward_supported(a, call->g, device, err);
  return fa_any_forward_supported(call, device, err);
}
