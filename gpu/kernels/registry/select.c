#include "gpu/kernels/registry/select.h"

#include "gpu/kernels/registry/tables.h"

#include <stdbool.h>

static fa_dtype half_type(int bf16) {
  return bf16 ? FA_BF16 : FA_F16;
}

/* ---- forward ---- */

const fa_kernel *fa_flash_forward_find(fa_kernel_ability wanted, const fa_kernel_device *device) {
  return fa_kernel_first(&fa_kernels_flash_forward, FA_STEP_FORWARD, &wanted, device);
}

const fa_kernel *fa_memeff_forward_find(fa_dtype dtype, int64_t head_dim, int64_t head_dim_v,
                                        const fa_kernel_device *device) {
  const fa_kernel_table *t = &fa_kernels_memeff_forward;
  const int64_t larger = head_dim > head_dim_v ? head_dim : head_dim_v;
  for (const fa_kernel *k = t->v; k < t->v + t->n; ++k)
    if (k->dtype == dtype && k->block_cols == k->ability.head_dim && larger <= k->block_cols &&
        (!device || k->shared_bytes <= device->max_shared_bytes))
      return k;
  return fa_kernel_narrowest(t, dtype, head_dim_v, NULL); /* they fit every device */
}

const fa_kernel *fa_flex_forward_find(fa_dtype dtype, int64_t head_dim, int64_t head_dim_v,
                                      const fa_kernel_device *device) {
  (void)head_dim;
  return fa_kernel_narrowest(&fa_kernels_flex_forward, dtype, head_dim_v, device);
}

const fa_kernel *fa_flex_forward_find_short(fa_dtype dtype, const fa_kernel_device *device) {
  const fa_kernel *k = fa_kernel_of_type(&fa_kernels_flex_forward_short, FA_STEP_FORWARD, dtype);
  return k && device && k->shared_bytes > device->max_shared_bytes ? NULL : k;
}

const fa_kernel *fa_hopper_forward_find(fa_kernel_ability wanted, int64_t seen, int varlen,
                                        const fa_kernel_device *device) {
  if (!device || !device->hopper) return NULL;
  wanted.varlen = varlen;
  wanted.keys = seen < FA_HOPPER_LONG ? (int)seen : FA_HOPPER_LONG;
  return fa_kernel_first(wanted.eight ? &fa_kernels_hopper_eight : &fa_kernels_hopper_forward,
                         FA_STEP_FORWARD, &wanted, device);
}

const fa_kernel *fa_hopper_tf32_find(fa_kernel_ability wanted, const fa_kernel_device *device) {
  if (!device || !device->hopper) return NULL;
  return fa_kernel_first(&fa_kernels_hopper_tf32, FA_STEP_FORWARD, &wanted, device);
}

const fa_kernel *fa_hopper_cache_find(fa_kernel_ability wanted, const fa_kernel_device *device) {
  if (!device || !device->hopper) return NULL;
  return fa_kernel_first(&fa_kernels_hopper_cache, FA_STEP_FORWARD, &wanted, device);
}

const fa_kernel *fa_hopper_flex_forward_find(fa_kernel_ability wanted, int varlen,
                                             const fa_kernel_device *device) {
  if (!device || !device->hopper) return NULL;
  wanted.flex = 1;
  wanted.varlen = varlen;
  return fa_kernel_first(&fa_kernels_hopper_forward, FA_STEP_FORWARD, &wanted, device);
}

/* ---- partial states ---- */

const fa_kernel *fa_merge_find(fa_dtype dtype, fa_dtype parts_dtype, int backward) {
  const fa_kernel_table *t = backward ? &fa_kernels_merge_backward : &fa_kernels_merge_forward;
  for (const fa_kernel *k = t->v; k < t->v + t->n; ++k)
    if (k->dtype == dtype && k->parts_dtype == parts_dtype) return k;
  return NULL;
}

/* ---- over a KV cache ---- */

const fa_cache_kernel *fa_cache_forward_find(fa_cache_ability wanted, const fa_kernel_device *device) {
  const bool is_large = wanted.head_dim > FA_CACHE_LARGE || wanted.large;
  const fa_kernel_table *t = is_large             ? &fa_kernels_cache_large
                             : wanted.cache_dtype ? &fa_kernels_cache_eight
                                                  : &fa_kernels_cache_forward;
  const fa_kernel *k = t == &fa_kernels_cache_eight
                           ? fa_kernel_first(&fa_kernels_cache_fewest, FA_STEP_FORWARD, &wanted, device)
                           : NULL;
  if (!k) k = fa_kernel_first(t, FA_STEP_FORWARD, &wanted, device);
  if (k || !is_large) return k;
  wanted.packed_rows = 0; /* one for few rows takes any number */
  return fa_kernel_first(t, FA_STEP_FORWARD, &wanted, device);
}

const fa_cache_kernel *fa_cache_filling_find(fa_cache_ability wanted, const fa_kernel_device *device) {
  if (wanted.large) return NULL;
  return fa_kernel_first(&fa_kernels_cache_filling, FA_STEP_FORWARD, &wanted, device);
}

const fa_cache_kernel *fa_hopper_decode_find(fa_cache_ability wanted, const fa_kernel_device *device) {
  if (!device || !device->hopper || wanted.head_dim > FA_CACHE_LARGE || wanted.large) return NULL;
  return fa_kernel_first(&fa_kernels_hopper_decode, FA_STEP_FORWARD, &wanted, device);
}

const fa_cache_kernel *fa_hopper_latent_find(fa_cache_ability wanted, const fa_kernel_device *device) {
  if (!device || !device->hopper) return NULL;
  return fa_kernel_first(&fa_kernels_hopper_latent_main, FA_STEP_FORWARD, &wanted, device);
}

const fa_cache_kernel *fa_cache_combine_find(int bf16) {
  return fa_kernel_of_type(&fa_kernels_cache_forward, FA_STEP_COMBINE, half_type(bf16));
}

/* ---- backward ---- */

static const fa_kernel *find_hopper_backward(const fa_kernel_ability *wanted,
                                             const fa_kernel_device *device) {
  const fa_kernel *k = fa_kernel_first(&fa_kernels_hopper_backward_main, FA_STEP_BY_KEYS, wanted, device);
  return k ? k : fa_kernel_first(&fa_kernels_hopper_backward_pair, FA_STEP_BY_KEYS, wanted, device);
}

const fa_kernel *fa_hopper_backward_find(fa_kernel_ability wanted, int varlen, int ordered,
                                         const fa_kernel_device *device) {
  if (!device || !device->hopper) return NULL;
  wanted.varlen = varlen;
  wanted.ordered = ordered;
  return find_hopper_backward(&wanted, device);
}

const fa_kernel *fa_hopper_flex_backward_find(fa_kernel_ability wanted, int varlen, int ordered,
                                              const fa_kernel_device *device) {
  if (!device || !device->hopper) return NULL;
  wanted.flex = 1;
  wanted.varlen = varlen;
  wanted.ordered = ordered;
  return find_hopper_backward(&wanted, device);
}

const fa_kernel *fa_hopper_tf32_backward_find(fa_kernel_ability wanted, int ordered,
                                              const fa_kernel_device *device) {
  if (!device || !device->hopper) return NULL;
  wanted.ordered = ordered;
  return fa_kernel_first(&fa_kernels_hopper_backward_tf32, FA_STEP_BY_KEYS, &wanted, device);
}

int fa_hopper_backward_cluster(const fa_kernel *kernel) {
  return kernel->cluster;
}
