#include "gpu/plan/latent.h"

#include "gpu/call/check.h"
#include "gpu/kernels/registry/select.h"
#include "gpu/plan/hopper.h"

#define HEAD_DIM 576
#define HEAD_DIM_V 512
#define TILE 64 /* keys: a page has whole tiles */

/* Two blocks of rows share tiles where every query has an even number of them, so that both see the same keys. */
static bool are_paired(const fa_attention *a) {
  return a->heads_q / a->heads_kv % 128 == 0;
}

static bool fill_map(const fa_attention *a, const fa_inference *kv, fa_tensor_map *map) {
  const int64_t slots = kv->block_table ? kv->page_size : a->seqlen_k;
  const fa_strides s = kv->k_cache_stride;
  const fa_hopper_axis axes[3] = {{slots, s.row, are_paired(a) ? TILE / 2 : TILE},
                                  {a->heads_kv, s.head, 1},
                                  {kv->cache_rows, s.batch, 1}};
  return fa_hopper_fill_map(map, a, kv->k_cache, a->head_dim, axes);
}

bool fa_latent_is_possible(const fa_attention *a, const fa_inference *kv) {
  fa_tensor_map map;
  return kv && kv->v_in_k && !kv->quantized && !kv->topk_indices && a->head_dim == HEAD_DIM &&
         fa_attention_head_dim_v(a) == HEAD_DIM_V && (!kv->block_table || kv->page_size % TILE == 0) &&
         fill_map(a, kv, &map);
}

const fa_kernel *fa_latent_find(const fa_attention *a, fa_kernel_ability wanted,
                                const fa_kernel_device *device) {
  wanted.pairs = are_paired(a);
  return fa_hopper_latent_find(wanted, device);
}

fa_cache_params *fa_latent_fill(const fa_attention *a, const fa_inference *kv, fa_hopper_latent_params *p) {
  fill_map(a, kv, &p->k);
  p->heads = fa_cache_divisor_of((int)(a->heads_q / a->heads_kv));
  return &p->c;
}
