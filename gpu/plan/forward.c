/* Forward calls: the flash and the memeff kernels, and those for sm_90a where they can do the work. */
#include "gpu/plan/forward.h"

#include "gpu/call/check.h"
#include "gpu/call/choose.h"
#include "gpu/kernels/registry/select.h"
#include "gpu/plan/hopper.h"
#include "gpu/plan/memeff.h"
#include "gpu/plan/split.h"

const fa_kernel *fa_forward_kernel(const fa_attention *a, bool aligned, const fa_kernel_device *device,
                                   fa_error *err) {
  if (fa_choose_forward(a) == FA_KERNELS_MEMEFF)
    return fa_memeff_forward_find(a->dtype, a->head_dim, fa_attention_head_dim_v(a), device);
  const fa_kernel_ability wanted = fa_kernel_wanted(a, aligned);
  const fa_kernel *k = fa_flash_forward_find(wanted, device);
  if (!k && device && fa_flash_forward_find(wanted, NULL))
    fa_fail(err, FA_ERR_UNSUPPORTED,
            "head_dim = %lld: every forward kernel for it needs more than the device's %zu bytes of shared "
            "memory",
            (long long)a->head_dim, device->max_shared_bytes);
  else if (!k)
    fa_fail(err, FA_ERR_UNSUPPORTED, "head_dim = %lld: no forward kernel was built for it",
            (long long)a->head_dim);
  return k;
}

static fa_status eight_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err) {
  if (!device || fa_hopper_forward_find(fa_kernel_wanted(a, true), a->seqlen_k, true, device)) return FA_OK;
  return fa_fail(err, FA_ERR_UNSUPPORTED, "e4m3: its kernels are for compute capability 9.0 (Hopper) alone");
}

fa_status fa_forward_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err) {
  if (a->e4m3) return eight_supported(a, device, err);
  if (a->splits > 1) return fa_split_supported(a, device, err);
  return fa_forward_kernel(a, true, device, err) ? FA_OK : FA_ERR_UNSUPPORTED;
}

/* A kernel for any device. */
static void add_portable(const fa_attention *a, const fa_kernel *k, fa_plan *out) {
  fa_attention_params *p = fa_plan_params(out, sizeof *p);
  fa_attention_params_fill(a, p);
  p->aligned = out->aligned;
  int64_t blocks = fa_blocks_of(a->seqlen_q, k->block_m);
  if (k->block_cols) blocks *= fa_blocks_of(fa_attention_head_dim_v(a), k->block_cols);
  fa_launch *l =
      fa_plan_add(out, FA_ENTRY_OF(k), blocks, a->heads_q, a->batch, k->n_threads, k->shared_bytes, p);
  l->writes = FA_WRITES_FORWARD | FA_WRITES(FA_T_P_DEBUG);
}

/* Of f32 by a kernel for sm_90a, if there is one for the call; it takes its parameters and its grid as the portable ones do. */
static bool add_tf32(const fa_attention *a, bool aligned, const fa_kernel_device *device, fa_plan *out) {
  if (a->dtype != FA_F32) return false;
  const fa_kernel *k = fa_hopper_tf32_find(fa_kernel_wanted(a, aligned), device);
  if (!k) return false;
  out->name = "hopper_forward";
  out->is_hopper = true;
  fa_plan_blocks(out, k->block_m, k->block_n);
  add_portable(a, k, out);
  return true;
}

/* Without a device the call is only checked: there is no other kernel, and no workspace. */
static fa_status add_eight(const fa_attention *a, const fa_kernel_device *device, fa_plan *out,
                           fa_error *err) {
  const fa_status status = eight_supported(a, device, err);
  if (status != FA_OK || !device) return status;
  fa_plan_add_amax_clear(a, out);
  if (fa_attention_is_empty(a) || fa_hopper_add_forward(a, device, out)) return FA_OK;
  return fa_fail(err, FA_ERR_UNSUPPORTED,
                 "e4m3: rows of q, k, v and o must begin on 16 bytes, and their strides be positive");
}

fa_status fa_plan_forward(const fa_call *call, const fa_kernel_device *device, fa_plan *out, fa_error *err) {
  const fa_attention *a = call->a;
  fa_status status = fa_attention_check_problem(a, err);
  if (status == FA_OK) status = fa_attention_check_tensors(a, err);
  if (status == FA_OK) status = fa_range_check("splits", a->splits, 0, FA_MAX_SPLITS_OF_KEYS, err);
  if (status != FA_OK) return status;
  out->aligned = fa_attention_is_aligned(a);
  if (a->e4m3) {
    out->name = "hopper_forward";
    return add_eight(a, device, out, err);
  }
  const int n_splits = fa_split_count(call, device);
  if (n_splits > 1) return fa_split_add_forward(call, device, n_splits, out, err);
  const bool whole = out->aligned && (!a->bias || fa_bias_is_aligned(a, a->bias, a->bias_stride));
  const fa_kernel *k = fa_forward_kernel(a, whole, device, err);
  if (!k) return FA_ERR_UNSUPPORTED;
  out->family = k->block_cols ? FA_PLAN_MEMEFF : FA_PLAN_FLASH;
  out->name = k->block_cols ? "memeff_forward" : "flash_forward";
  fa_plan_blocks(out, k->block_m, k->block_n);
  if (fa_attention_is_empty(a) || fa_hopper_add_forward(a, device, out) || add_tf32(a, whole, device, out))
    return FA_OK;
  add_portable(a, k, out);
  return FA_OK;
}
