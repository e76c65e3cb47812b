/* What calls over a cache of 8 or 4 bits may ask for. */
#include "gpu/call/check.h"
#include "gpu/call/check_cache.h"
#include "gpu/kernels/params/cache.h"

/* A feature that their kernels have not, in words; NULL: none. */
static const char *beyond(const fa_attention *a, const fa_inference *kv) {
  const int64_t head_dim_v = fa_attention_head_dim_v(a);
  const struct {
    bool wanted;
    const char *what;
  } all[] = {{a->dtype == FA_F32, "dtype f32"},
             {a->head_dim > 256, "a head_dim above 256"},
             {a->head_dim % 16 != 0, "a head_dim that is no multiple of 16"},
             {kv->v_in_k, "v_in_k"},
             {head_dim_v != a->head_dim, "a head_dim_v of its own"},
             {kv->topk_indices != NULL, "topk_indices"},
             {kv->rotary_dim > 0, "rotary_dim"},
             {a->bias != NULL, "a bias"},
             {a->dropout_p > 0, "dropout"},
             {a->flex != NULL, "expressions or block lists"},
             {kv->descales_of_slots && kv->n_new > 0, "descales of slots and new keys at once"},
             {kv->cache_dtype == FA_E2M1 && kv->n_new > 0, "new keys in FA_E2M1"},
             {kv->cache_dtype == FA_E2M1 && kv->descales_of_slots, "descales of slots in FA_E2M1"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (all[i].wanted) return all[i].what;
  return NULL;
}

/* The same of rows that mix types. */
static const char *beyond_mixed(const fa_attention *a, const fa_inference *kv) {
  const struct {
    bool wanted;
    const char *what;
  } all[] = {
      {a->dtype == FA_F32, "dtype f32"},
      {!kv->v_in_k, "a v_cache"},
      {kv->cache_dtype != FA_E4M3, "another cache_dtype than FA_E4M3"},
      {a->head_dim > FA_CACHE_MAX_HEAD_DIM, "a head_dim above 576"},
      {a->head_dim % 8 != 0, "a head_dim that is no multiple of 8"},
      {fa_attention_head_dim_v(a) > FA_CACHE_MAX_HEAD_DIM_V, "a head_dim_v above 512"},
      {fa_attention_head_dim_v(a) % FA_CACHE_MIXED_TILE != 0, "a head_dim_v that is no multiple of 128"},
      {kv->rotary_dim > 0, "rotary_dim"},
      {kv->n_new > 0, "new keys"},
      {kv->descales_of_slots, "descales of slots"},
      {a->bias != NULL, "a bias"},
      {a->dropout_p > 0, "dropout"},
      {a->flex != NULL, "expressions or block lists"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (all[i].wanted) return all[i].what;
  return NULL;
}

static fa_status check_descales(const fa_attention *a, const fa_inference *kv, fa_error *err) {
  if (a->descale_batch_stride < 0 || a->descale_head_stride < 0 || kv->descale_slot_stride < 0)
    return fa_fail(err, FA_ERR_INPUT,
                   "descale strides (%lld, %lld, %lld): negative strides are not supported",
                   (long long)a->descale_batch_stride, (long long)kv->descale_slot_stride,
                   (long long)a->descale_head_stride);
  if (kv->descales_of_slots && (!a->k_descale || !a->v_descale))
    return fa_fail(err, FA_ERR_INPUT, "%s is NULL, but there are descales_of_slots",
                   a->k_descale ? "v_descale" : "k_descale");
  const fa_status status = fa_alignment_check("k_descale", a->k_descale, 4, err);
  return status == FA_OK ? fa_alignment_check("v_descale", a->v_descale, 4, err) : status;
}

fa_status fa_cache_check_quantized(const fa_attention *a, const fa_inference *kv, fa_error *err) {
  if (kv->mixed_rows && !kv->quantized)
    return fa_fail(err, FA_ERR_INPUT, "mixed_rows: of quantized caches alone");
  if (!kv->quantized) return fa_amax_check(a, false, err);
  if (kv->cache_dtype != FA_E4M3 && kv->cache_dtype != FA_E5M2 && kv->cache_dtype != FA_I8 &&
      kv->cache_dtype != FA_E2M1)
    return fa_fail(err, FA_ERR_INPUT,
                   "cache_dtype: a quantized cache is of FA_E4M3, FA_E5M2, FA_I8 or FA_E2M1");
  const char *what = kv->mixed_rows ? beyond_mixed(a, kv) : beyond(a, kv);
  if (what)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "%s: not together with %s",
                   kv->mixed_rows ? "mixed_rows" : "quantized caches", what);
  const fa_status status = fa_amax_check(a, !kv->mixed_rows, err);
  return status == FA_OK ? check_descales(a, kv, err) : status;
}

bool fa_cache_has_blocks(const fa_inference *kv) {
  return kv->quantized && kv->cache_dtype == FA_E2M1;
}

int64_t fa_cache_columns(const fa_attention *a, const fa_inference *kv) {
  const int64_t v = fa_attention_head_dim_v(a);
  if (fa_cache_has_blocks(kv)) return a->head_dim / 2;
  return kv->mixed_rows ? v + v / FA_CACHE_MIXED_TILE * 4 + (a->head_dim - v) * 2 : a->head_dim;
}

int fa_cache_element_bytes(const fa_attention *a, const fa_inference *kv) {
  return kv->quantized ? 1 : fa_attention_element_bytes(a);
}

int fa_cache_new_bytes(const fa_attention *a, const fa_inference *kv) {
  return kv->quantizes_new ? fa_attention_element_bytes(a) : fa_cache_element_bytes(a, kv);
}
